#include "sample/profile_tables.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "output/notation.h"
#include "output/table_lines.h"
#include "output/time_text.h"
#include "sample/stack_text.h"
#include "sample/syscall_text.h"

namespace ktrace::sample {

using output::NamedFrame;

namespace {

/// A function as tables know it.
struct Function {
    std::string name, module;
    auto operator<=>(const Function &) const = default;
};

Function function_of(const NamedFrame &frame) { return {name_of(frame), frame.module}; }

/// Rows behind their numbers: where all are of one module, it stands in the heading.
class Rows {
  public:
    void add(std::string numbers, Function function) { rows_.emplace_back(std::move(numbers), std::move(function)); }

    void append(std::string &out, const std::string &heading, const TableSize &size) const {
        if (rows_.empty()) return;
        const bool is_one = std::all_of(rows_.begin(), rows_.end(),
                                        [&](const auto &row) { return row.second.module == rows_[0].second.module; });
        const std::string of_all = is_one ? bracketed(rows_[0].second.module) : "";
        if (!out.empty()) out += '\n';
        out += heading + of_all + '\n';
        const std::size_t shown = size.top == 0 ? rows_.size() : std::min(size.top, rows_.size());
        for (std::size_t i = 0; i < shown; i++) {
            const auto &[numbers, function] = rows_[i];
            const std::string name = function.name + (is_one ? "" : bracketed(function.module));
            const bool fits = size.width <= numbers.size() || numbers.size() + name.size() <= size.width;
            out += numbers + (fits ? name : output::cut_in_the_middle(name, size.width - numbers.size())) + '\n';
        }
        if (shown < rows_.size())
            out += std::string(rows_[0].first.size(), ' ') + std::to_string(rows_.size() - shown) + " more\n";
    }

  private:
    static std::string bracketed(const std::string &module) {
        return module.empty() ? "" : " [" + text::escape(module) + "]";
    }

    std::vector<std::pair<std::string, Function>> rows_;
};

template <class Key, class Value, class Size>
std::vector<std::pair<Key, Value>> largest_first(const std::map<Key, Value> &found, Size size) {
    std::vector<std::pair<Key, Value>> sorted(found.begin(), found.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const auto &one, const auto &other) { return size(one.second) > size(other.second); });
    return sorted;
}

struct Times {
    std::uint64_t self = 0, total = 0; // looks
};

void append_functions(std::string &out, const std::vector<NamedSample> &samples, const TableSize &size) {
    std::map<Function, Times> found;
    std::uint64_t all = 0;
    for (const NamedSample &each : samples) {
        const std::uint64_t looks = each.sample.on.looks;
        if (looks == 0 || each.frames.empty()) continue;
        all += looks;
        found[function_of(each.frames[0])].self += looks;
        std::set<Function> counted; // once, however often it has called itself
        for (const NamedFrame &frame : each.frames)
            if (counted.insert(function_of(frame)).second) found[function_of(frame)].total += looks;
    }
    auto percent = [all](std::uint64_t looks) {
        return fmt::format("{:.1f}%", 100.0 * static_cast<double>(looks) / static_cast<double>(all));
    };
    Rows rows;
    auto sorted = largest_first(found, [](const Times &each) { return std::pair(each.self, each.total); });
    for (auto &[function, shares] : sorted)
        rows.add(fmt::format("{:>8}  {:>8}  ", percent(shares.self), percent(shares.total)), function);
    rows.append(out, fmt::format("{:>8}  {:>8}  function", "self", "total"), size);
}

/// True for the libraries whose functions make the system calls for others.
bool is_of_c_library(std::string_view module) {
    for (std::string_view name : {"libc.so", "libc-", "libc.musl", "libpthread", "ld-linux", "ld-musl", "[vdso]"})
        if (module.starts_with(name)) return true;
    return false;
}

/// The function that waits: the innermost one that is not the C library's.
Function caller_of(const NamedSample &sample) {
    for (const NamedFrame &frame : sample.frames)
        if (!is_of_c_library(frame.module)) return function_of(frame);
    return sample.frames.empty() ? Function{"-", ""} : function_of(sample.frames[0]);
}

std::string call_of(const Sample &sample) { return sample.syscall < 0 ? "-" : syscall_name(sample.syscall); }

void append_waits(std::string &out, const std::vector<NamedSample> &samples, const TableSize &size) {
    std::map<std::pair<std::string, Function>, std::uint64_t> found;
    std::size_t longest = std::string_view("system call").size();
    for (const NamedSample &each : samples) {
        if (each.sample.off.looks == 0) continue;
        found[{call_of(each.sample), caller_of(each)}] += each.sample.off.ns;
        longest = std::max(longest, call_of(each.sample).size());
    }
    Rows rows;
    for (auto &[wait, ns] : largest_first(found, [](std::uint64_t each) { return each; })) {
        const std::string time = output::time_text(static_cast<double>(ns), output::table_style(false));
        rows.add(fmt::format("{:>8}  {:<{}}  ", time, wait.first, longest), wait.second);
    }
    rows.append(out, fmt::format("{:>8}  {:<{}}  caller", "time", "system call", longest), size);
}

/// A semicolon is what separates names, and nothing of a name.
std::string folded_name(std::string name) {
    std::replace(name.begin(), name.end(), ';', ':');
    return name;
}

} // namespace

std::string profile_tables(const std::vector<NamedSample> &samples, const TableSize &size) {
    std::string out;
    append_functions(out, samples, size);
    append_waits(out, samples, size);
    return out;
}

std::vector<Path> paths_of(const std::vector<NamedSample> &samples, Which which) {
    std::map<std::vector<std::string>, std::uint64_t> found;
    for (const NamedSample &each : samples) {
        const Seen &seen = which == Which::waiting ? each.sample.off : each.sample.on;
        if (seen.looks == 0) continue;
        std::vector<std::string> names{folded_name(text::escape(each.key.comm))};
        for (auto frame = each.frames.rbegin(); frame != each.frames.rend(); ++frame)
            names.push_back(folded_name(name_of(*frame)));
        found[std::move(names)] += seen.looks;
    }
    return {found.begin(), found.end()};
}

std::string folded(const std::vector<Path> &paths) {
    std::string out;
    for (const auto &[names, looks] : paths) {
        for (std::size_t i = 0; i < names.size(); i++) out += (i == 0 ? "" : ";") + names[i];
        out += ' ' + std::to_string(looks) + '\n';
    }
    return out;
}

std::string profile_json(const std::vector<NamedSample> &samples, output::Symbolizer &symbolizer) {
    std::string out;
    for (const NamedSample &each : samples) {
        const auto &[on, off, syscall] = each.sample;
        out += fmt::format(R"({{"type":"sample","pid":{},"comm":)", each.key.pid.value);
        output::append_json_string(out, each.key.comm);
        out += fmt::format(R"(,"on":{},"off":{},"on_ns":{},"off_ns":{})", on.looks, off.looks, on.ns, off.ns);
        if (syscall >= 0) out += fmt::format(R"(,"syscall":"{}")", syscall_name(syscall));
        out += ",\"stack\":";
        append_stack_json(out, each.key.pid, each.key.stack, symbolizer);
        out += "}\n";
    }
    return out;
}

} // namespace ktrace::sample
