#include "sample/thread_list.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "output/notation.h"
#include "output/render.h"
#include "output/time_text.h"
#include "sample/stack_text.h"
#include "sample/syscall_text.h"

namespace ktrace::sample {

namespace {

std::string head_of(const ThreadLook &thread) {
    std::string line = fmt::format("{} {} {}", thread.tid.value, text::escape(thread.comm), thread.state);
    if (thread.waited_ns)
        line += " " + output::time_text(static_cast<double>(*thread.waited_ns), output::event_style(false));
    if (thread.call) line += " " + syscall_text(*thread.call);
    return line + "\n";
}

} // namespace

std::string threads_text(const std::vector<ThreadLook> &threads, output::Symbolizer &symbolizer) {
    std::vector<bool> is_shown(threads.size());
    std::string out;
    for (std::size_t first = 0; first < threads.size(); first++) {
        if (is_shown[first]) continue;
        const ThreadLook &shown = threads[first];
        for (std::size_t i = first; i < threads.size(); i++) {
            const ThreadLook &each = threads[i];
            const bool is_equal = each.pid == shown.pid && each.stack == shown.stack && each.why_not == shown.why_not;
            if (is_shown[i] || !is_equal) continue;
            is_shown[i] = true;
            out += head_of(each);
        }
        append_stack_lines(out, shown.pid, shown.stack, symbolizer);
        if (!shown.why_not.empty()) out += "    (" + shown.why_not + ")\n";
    }
    return out;
}

std::string threads_json(const std::vector<ThreadLook> &threads, output::Symbolizer &symbolizer) {
    std::string out;
    for (const ThreadLook &thread : threads) {
        out += fmt::format(R"({{"type":"thread","time_ns":{},"pid":{},"tid":{},"comm":)", thread.time_ns,
                           thread.pid.value, thread.tid.value);
        output::append_json_string(out, thread.comm);
        out += fmt::format(R"(,"state":"{}")", thread.state);
        if (thread.waited_ns) out += fmt::format(",\"waited_ns\":{}", *thread.waited_ns);
        if (thread.call)
            out += fmt::format(R"(,"syscall":"{}","args":{})", syscall_name(thread.call->syscall),
                               syscall_arguments_json(*thread.call));
        if (!thread.stack.empty()) {
            out += ",\"stack\":";
            append_stack_json(out, thread.pid, thread.stack, symbolizer);
        }
        if (!thread.why_not.empty()) {
            out += ",\"reason\":";
            output::append_json_string(out, thread.why_not);
        }
        out += "}\n";
    }
    return out;
}

} // namespace ktrace::sample
