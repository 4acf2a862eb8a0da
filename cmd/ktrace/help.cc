#include "help.h"

#include <array>
#include <string_view>

#include "command_line/option_table.h"

namespace ktrace::cli {

namespace {

struct Section {
    Group group;
    const char *title;
};

constexpr std::array<Section, 6> sections{{{Group::target, "What is traced, and how long"},
                                           {Group::probes, "Probes (each as often as you like, in any mix)"},
                                           {Group::handlers, "What happens at a probe"},
                                           {Group::aggregates, "Tables instead of a line an event"},
                                           {Group::selection, "Which hits, in this order"},
                                           {Group::output, "Output"}}};

constexpr std::string_view usage_attach = "ktrace attach -p PID|NAME[,...] PROBE... [OPTIONS]";
constexpr std::string_view usage_run = "ktrace run PROBE... [OPTIONS] [--] PROGRAM [ARG...]";
constexpr std::string_view usage_list = "ktrace list (-p PID | FILE) [PATTERN] [OPTIONS]";
constexpr std::string_view usage_ctl = "ktrace ctl -p PID list|stats|add PROBE...|remove N|enable N|disable N|on|off";
constexpr std::string_view usage_repair = "ktrace repair -p PID";

constexpr std::string_view usage_bench = "ktrace bench";
constexpr std::string_view usage_doctor = "ktrace doctor";

constexpr std::string_view examples_attach = R"(
Examples:
  ktrace attach -p 1234 --ret do_work                      each call: what it returned, how long it took
  ktrace attach -p 1234 --ret do_work --hist               the latencies as a histogram
  ktrace attach -p 1234 -j 'libc:open*' --by comm          calls of a library, counted
  ktrace attach -p 1234 -k server.c:120 --print var.n      a line of the source, a local variable
)";

constexpr std::string_view examples_run = R"(
Examples:
  ktrace run -j libc:write ls -l                           the arguments of each call
  ktrace run --ret parse --if 'duration > 1000000' ./a     only the calls that took more than 1 ms
  ktrace run -r parse --stats --format json -o t ./a       statistics for a script
)";

constexpr std::string_view examples_list = R"(
Examples:
  ktrace list ./server                                     all functions of a file, with their types
  ktrace list -p 1234 'do_*'                               those of a running process that match
  ktrace list ./server do_work --lines --inlines           where FILE:LINE and inlined probes can be
)";

constexpr std::string_view examples_ctl = R"(
Examples:
  ktrace ctl -p 1234 stats                                 the probes by number, and their counts so far
  ktrace ctl -p 1234 add -j parse --if 'args.n > 10'       one more
  ktrace ctl -p 1234 disable 2                             until enable 2; off and on: all of them
)";

constexpr std::string_view usage_plugin = "ktrace plugin build FILE.c [-o FILE.so]";

constexpr std::string_view examples_plugin = R"(
Examples:
  ktrace plugin build probe.c                              compile a source in the style of the kernel's kprobes
  ktrace attach -p 1234 --plugin './probe.so func=do_work' run it, with a parameter of its own
)";

constexpr std::string_view spec_note = R"(
SPEC:  [MODULE:]SYMBOL[+OFFSET]   [MODULE:]FILE:LINE   0xADDRESS   MODULE:0xVADDR     globs are fine: 'libfoo:do_*'
EXPR:  arg0...arg9  args.NAME  retval  duration  tid  pid  comm  nsecs  func  reg("ax")  str(P[, N])  buf(P, N)
       var.NAME  stack  *P  p->field  a.b  a[i]  (int32)x  and C's operators
)";

constexpr std::size_t help_column = 30;

std::string names(const Option &option) {
    std::string text = option.letter ? std::string("  -") + option.letter + ", " : std::string("      ");
    text += std::string("--") + option.name;
    if (option.takes == Takes::value) text += std::string(" ") + option.value_name;
    if (option.takes == Takes::optional_value) text += std::string("[=") + option.value_name + "]";
    return text;
}

void append_section(std::string &out, const Section &section, Command command) {
    std::string lines;
    for (const Option &option : options()) {
        if (option.group != section.group || !belongs_to(option, command)) continue;
        std::string line = names(option);
        if (line.size() + 2 > help_column)
            line += '\n' + std::string(help_column, ' ');
        else
            line.resize(help_column, ' ');
        lines += line + option.help + '\n';
    }
    if (!lines.empty()) out += std::string("\n") + section.title + ":\n" + lines;
}

struct Page {
    std::string_view about;
    std::string_view usage[8];
    std::string_view examples[6];
};

Page page(Command command) {
    switch (command) {
    case Command::attach:
        return {"Trace running processes, until Ctrl-C, --duration, --max-events, or their end.\n",
                {usage_attach},
                {examples_attach}};
    case Command::run:
        return {"Trace a program from its first instruction; its exit status becomes ktrace's.\n",
                {usage_run},
                {examples_run}};
    case Command::list: return {"Show what can be probed.\n", {usage_list}, {examples_list}};
    case Command::ctl: return {"Talk to the ktrace that traces a process.\n", {usage_ctl}, {examples_ctl}};
    case Command::bench:
        return {
            "Measure what a hit costs on this machine, beside the kernel's figures for kprobes.\n", {usage_bench}, {}};
    case Command::doctor:
        return {"Report what this machine and user may trace, and how to change that.\n", {usage_doctor}, {}};
    case Command::repair: return {"Take out what a killed ktrace left in a process.\n", {usage_repair}, {}};
    case Command::plugin:
        return {"Build plugins for --plugin: handlers in C that the probes of a trace run.\n",
                {usage_plugin},
                {examples_plugin}};
    case Command::none: break;
    }
    return {"ktrace: probes on any instruction of a running program. No root, no restart, no harm.\n",
            {usage_attach, usage_run, usage_list, usage_ctl, usage_plugin, usage_repair, usage_bench, usage_doctor},
            {examples_attach, examples_run, examples_list, examples_ctl, examples_plugin}};
}

} // namespace

std::string help(Command command) {
    Page shown = page(command);
    std::string out(shown.about);
    const char *lead = "\nUsage: ";
    for (std::string_view usage : shown.usage) {
        if (usage.empty()) continue;
        out += lead;
        out += usage;
        out += '\n';
        lead = "       ";
    }
    for (const Section &section : sections) append_section(out, section, command);
    bool has_specs = command != Command::list && command != Command::bench && command != Command::plugin &&
                     command != Command::doctor;
    if (has_specs) out += spec_note;
    bool first = true;
    for (std::string_view each : shown.examples) {
        if (each.empty()) continue;
        // One heading for all of them.
        out += first ? each : each.substr(std::string_view("\nExamples:\n").size());
        first = false;
    }
    return out + "\nThe manual: man ktrace\n";
}

} // namespace ktrace::cli
