// list: shows what can be probed in a process or a file, a line each: address, signature, module, source.
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "base/text.h"
#include "command_line/values.h"
#include "commands.h"
#include "complain.h"
#include "inspect/catalog.h"
#include "os/self/sigbus_guard.h"
#include "output/writer.h"
#include "symbols/stripped.h"

namespace ktrace::cli {

namespace {

int complain_and_end(const Error &error) {
    complain(error);
    return error.kind == Error::Kind::usage ? bad_usage : failed;
}

/// Names come from the file that is looked into: nothing in them may steer the terminal.
std::string line_of(const inspect::CatalogEntry &entry) {
    using Kind = inspect::CatalogEntry::Kind;
    const bool is_within = entry.kind == Kind::line || entry.kind == Kind::inlined;
    const char *indent = is_within ? "  " : "";
    std::string line =
        fmt::format("{:016x} {}{} [{}]", entry.address, indent, text::escape(entry.text), text::escape(entry.module));
    if (!entry.source.empty()) line += ' ' + text::escape(entry.source);
    return line + '\n';
}

/// Where a pattern of all modules has found little, the program may have lost others.
void note_little(const ListRequest &request, const std::vector<inspect::CatalogModule> &modules, std::size_t shown) {
    constexpr std::size_t little = 3;
    const bool is_of_all = !request.pattern.empty() && request.pattern.find(':') == std::string::npos;
    if (!is_of_all || shown == 0 || shown > little) return;
    if (std::string lost = symbols::stripped_notice(*modules.at(0).module); !lost.empty()) notify(lost);
}

} // namespace

int list(const Invocation &invocation) {
    const ListRequest &request = invocation.list;
    auto modules =
        request.pid != 0 ? inspect::modules_of_process(Pid{request.pid}) : inspect::module_of_file(request.file);
    if (!modules) {
        Error error = modules.error();
        if (request.pid == 0 && error.hint.empty() && is_number(request.file))
            error.hint = "a process goes behind -p: -p " + request.file;
        return complain_and_end(error);
    }

    output::Writer writer(STDOUT_FILENO, "standard output");
    std::size_t shown = 0;
    auto show = [&](const inspect::CatalogEntry &entry) {
        writer.write(line_of(entry));
        shown++;
    };
    auto listed = inspect::list_catalog(*modules, {request.pattern, request.lines, request.inlines}, show);
    writer.flush();
    for (const inspect::CatalogModule &each : *modules)
        if (std::string unread = each.module->unread_debug_information(); !unread.empty()) notify(unread);
    note_little(request, *modules, shown);
    bool cut = false;
    for (const std::string &notice : os::take_cut_file_notices()) {
        notify(notice);
        cut = true;
    }
    if (!listed) return complain_and_end(listed.error());
    if (auto written = writer.take_error(); !written) return complain_and_end(written.error());
    return cut ? failed : 0;
}

} // namespace ktrace::cli
