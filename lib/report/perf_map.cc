#include "report/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <vector>

#include "base/fd.h"
#include "os/proc/procfs.h"

namespace ktrace::report {

namespace {

constexpr std::size_t most_functions = 1'000'000;
constexpr std::size_t longest_line = 4096;

/// The next word of the line as a hex number; takes it off.
std::optional<std::uint64_t> take_hex(std::string_view &line) {
    std::uint64_t value = 0;
    if (line.starts_with("0x")) line.remove_prefix(2);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
    if (error != std::errc{} || end == line.data() + line.size() || *end != ' ') return std::nullopt;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
    return value;
}

/// In the process's own /tmp, by its number in its own pid namespace.
std::string path_of(Pid pid) {
    return "/proc/" + std::to_string(pid.value) + "/root/tmp/perf-" + std::to_string(os::innermost_id(Tid{pid.value})) +
           ".map";
}

} // namespace

const PerfMap::Function *PerfMap::at(std::uint64_t address) const {
    auto behind = functions_.upper_bound(address);
    if (behind == functions_.begin()) return nullptr;
    const Function &function = std::prev(behind)->second;
    return address < function.end ? &function : nullptr;
}

void PerfMap::add_line(std::string_view line) {
    const auto start = take_hex(line);
    const auto size = start ? take_hex(line) : std::nullopt;
    if (!size || *size == 0 || *start + *size < *start || line.empty() || functions_.size() >= most_functions) return;
    const std::uint64_t end = *start + *size;
    auto first = functions_.upper_bound(*start);
    if (first != functions_.begin() && std::prev(first)->second.end > *start) --first;
    auto last = first;
    while (last != functions_.end() && last->second.start < end) ++last;
    functions_.erase(first, last);
    functions_[*start] = {*start, end, std::string(line)};
}

void PerfMap::add(std::string_view text) {
    for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
        unfinished_ += text.substr(0, end);
        add_line(unfinished_);
        unfinished_.clear();
        text.remove_prefix(end + 1);
    }
    if (unfinished_.size() < longest_line) unfinished_ += text;
}

void PerfMap::read(Pid pid) {
    const Fd file(::open(path_of(pid).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    struct stat is {};
    if (!file || ::fstat(file.get(), &is) != 0 || !S_ISREG(is.st_mode)) return;
    std::vector<char> text(65536);
    ssize_t got = 0;
    while ((got = ::pread(file.get(), text.data(), text.size(), static_cast<off_t>(read_))) > 0) {
        add({text.data(), static_cast<std::size_t>(got)});
        read_ += static_cast<std::uint64_t>(got);
    }
}

} // namespace ktrace::report
