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

// The commonest first.
constexpr std::array<Section, 6> sections{{{Group::probes, "Probes (each as often as you like, in any mix)"},
                                           {Group::target, "What is traced, and how long"},
                                           {Group::handlers, "At a probe (inside its quotes: of it alone)"},
                                           {Group::aggregates, "Tables instead of a line an event"},
                                           {Group::selection, "Which hits, in this order"},
                                           {Group::output, "Output"}}};

constexpr std::string_view overview = R"(
Usage: ktrace COMMAND ..., and for the options of one: ktrace COMMAND --help
  attach -p PID|NAME PROBE...          trace running processes
  run PROBE... [--] PROGRAM [ARG...]   trace a program from its beginning
  stack -p PID|NAME                    show where every thread is now
  profile -p PID|NAME                  show where the time goes
  diff OLD.json NEW.json               compare two runs, function by function
  list (-p PID | FILE) [PATTERN]       show what can be probed
  ctl -p PID ORDER                     talk to the ktrace that traces PID
  repair -p PID                        take out what a killed ktrace left
  plugin build FILE.c                  compile handlers of your own, in C
  bench                                measure what a hit costs here
  doctor                               report what may be traced here

Examples:
  ktrace attach -p nginx                         what could be probed?
  ktrace attach -p 1234 -r do_work               each call: result and time
  ktrace attach -p 1234 -k a.c:12 --print var.n  a line, a local variable
  ktrace attach -p 1234 -w cfg.limit --stack     the code that writes to it
  ktrace run -j libc:write ls -l                 the arguments of each call
)";

constexpr std::string_view examples_attach = R"(
Example:  ktrace attach -p 1234 -j 'f --print arg0' -r 'g --stats'
)";

constexpr std::string_view examples_run = R"(
Examples: ktrace run -j libc:write ls -l            the arguments of each call
          ktrace run -r parse --expect 'p99 < 10ms && count <= 9' ./a   for CI
)";

constexpr std::string_view examples_diff = R"(
Examples:
  ktrace run -r parse --stats --format json -o old.json ./a     one run
  ktrace diff old.json new.json --expect 'p99 < 1.2 * old.p99'  no slower?
)";

constexpr std::string_view examples_stack = R"(
Examples:
  ktrace stack -p 1234                      a process hangs: where?
  ktrace stack -p nginx --format json       all of that name, for a script
)";

constexpr std::string_view examples_profile = R"(
Examples:
  ktrace profile -p 1234                    functions, and what is waited for
  ktrace profile -p 1234 -o graph.svg       a flame graph, for a browser
  ktrace profile -p 1234 --format folded --waiting    stacks that wait
)";

constexpr std::string_view examples_list = R"(
Examples:
  ktrace list ./server                      functions of a file, with types
  ktrace list -p 1234 'do_*'                of a process, those that match
  ktrace list ./server do_work --lines      where FILE:LINE probes can be
)";

constexpr std::string_view examples_ctl = R"(
Examples:
  ktrace ctl -p 1234 stats                  the probes by number, with counts
  ktrace ctl -p 1234 add -j parse --if 'args.n > 10'    one more
  ktrace ctl -p 1234 disable 2              until enable 2; off, on: all of them
)";

constexpr std::string_view examples_plugin = R"(
Examples:
  ktrace plugin build probe.c               a source in the style of kprobes
  ktrace attach -p 1234 --plugin './probe.so func=do_work'    run it
)";

constexpr std::string_view spec_note = R"(SPEC  [MODULE:]SYMBOL[+OFFSET]|GLOB|FILE:LINE  0xADDRESS  MODULE:0xVADDR
EXPR  arg0...arg9 args.NAME retval duration tid pid comm nsecs func reg("ax")
      str(P[, N]) buf(P, N) var.NAME errno stack *P p->f a[i] (int32)x operators
)";

constexpr std::size_t help_column = 30, width = 80;

std::string names(const Option &option) {
    std::string text = option.letter ? std::string("  -") + option.letter + ", " : std::string("      ");
    text += std::string("--") + option.name;
    if (option.takes == Takes::value) text += std::string(" ") + option.value_name;
    if (option.takes == Takes::optional_value) text += std::string("[=") + option.value_name + "]";
    return text;
}

/// Breaks a text at blanks, into lines that end before the width; all but the first begin at the column.
std::string wrapped(std::string_view text) {
    std::string out;
    while (help_column + text.size() > width) {
        const std::size_t blank = text.rfind(' ', width - help_column);
        if (blank == text.npos) break;
        out += std::string(text.substr(0, blank)) + '\n' + std::string(help_column, ' ');
        text.remove_prefix(blank + 1);
    }
    return out + std::string(text);
}

std::string heading(std::string_view text, bool bold) {
    return bold ? "\x1b[1m" + std::string(text) + "\x1b[0m" : std::string(text);
}

void append_section(std::string &out, const Section &section, Command command, bool bold) {
    std::string lines;
    for (const Option &option : options()) {
        const bool is_general = option.letter == 'h' || option.letter == 'V'; // in one line, behind all others
        if (option.group != section.group || !belongs_to(option, command) || is_general) continue;
        std::string line = names(option);
        if (line.size() + 2 > help_column)
            line += '\n' + std::string(help_column, ' ');
        else
            line.resize(help_column, ' ');
        lines += line + wrapped(option.help) + '\n';
    }
    if (!lines.empty()) out += heading(std::string(section.title) + ":", bold) + "\n" + lines;
}

struct Page {
    std::string_view about, usage, examples;
};

Page page(Command command) {
    switch (command) {
    case Command::attach:
        return {"Trace running processes, until Ctrl-C, --duration, --max-events, or their end.\n",
                "ktrace attach -p PID|NAME[,...] PROBE... [OPTIONS]", examples_attach};
    case Command::run:
        return {"Trace a program from its first instruction; its exit status becomes ktrace's.\n",
                "ktrace run PROBE... [OPTIONS] [--] PROGRAM [ARG...]", examples_run};
    case Command::stack:
        return {"Show where every thread is now; one that waits is not stopped for it.\n",
                "ktrace stack -p PID|NAME[,...] [OPTIONS]", examples_stack};
    case Command::profile:
        return {"Show where the time goes, by samples of all threads, for 5 s or --duration.\n",
                "ktrace profile -p PID|NAME[,...] [OPTIONS]", examples_profile};
    case Command::diff:
        return {"Compare the tables of two runs with --format json, function by function.\n",
                "ktrace diff OLD.json NEW.json [OPTIONS]", examples_diff};
    case Command::list:
        return {"Show what can be probed.\n", "ktrace list (-p PID | FILE) [PATTERN] [OPTIONS]", examples_list};
    case Command::ctl:
        return {"Talk to the ktrace that traces a process.\n",
                "ktrace ctl -p PID ORDER, which is list, stats, add PROBE..., remove N...,\n"
                "       enable N..., disable N..., on or off",
                examples_ctl};
    case Command::bench:
        return {"Measure what a hit costs on this machine, beside the kernel's figures.\n", "ktrace bench", {}};
    case Command::doctor:
        return {"Report what this machine and user may trace, and how to change that.\n", "ktrace doctor", {}};
    case Command::repair: return {"Take out what a killed ktrace left in a process.\n", "ktrace repair -p PID", {}};
    case Command::plugin:
        return {"Build plugins for --plugin: handlers in C that the probes of a trace run.\n",
                "ktrace plugin build FILE.c [-o FILE.so]", examples_plugin};
    case Command::none: break;
    }
    return {};
}

/// A text that begins with an empty line and its heading.
std::string with_heading(std::string_view text, bool bold) {
    const std::size_t end = text.find_first_of(":\n", 1) + 1;
    return "\n" + heading(text.substr(1, end - 1), bold) + std::string(text.substr(end));
}

} // namespace

std::string help(Command command, bool bold) {
    if (command == Command::none) {
        const std::size_t examples = overview.find("\nExamples:");
        return "ktrace: probes on any instruction of a running program. No root, no restart.\n" +
               with_heading(overview.substr(0, examples), bold) + with_heading(overview.substr(examples), bold) +
               "\nThe manual: man ktrace\n";
    }
    const Page shown = page(command);
    std::string out = std::string(shown.about) + heading("Usage:", bold) + " " + std::string(shown.usage) + "\n";
    out += '\n';
    for (const Section &section : sections) append_section(out, section, command, bold);
    out += "  -h, --help, -V, --version   this help; the version of ktrace\n";
    const bool takes_probes = command == Command::attach || command == Command::run || command == Command::ctl;
    if (takes_probes) out += spec_note;
    if (!shown.examples.empty()) out += with_heading(shown.examples, bold);
    return out;
}

} // namespace ktrace::cli
