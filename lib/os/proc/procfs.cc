#include "os/proc/procfs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/host.h"
#include "base/fd.h"
#include "base/signals.h"
#include "base/text.h"

namespace ktrace::os {

namespace {

/// Takes the next word (up to blanks) off the front.
std::string_view take_word(std::string_view &line) {
    // (find_first_of calls memchr for each character of the line.)
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    const auto *start = std::find_if_not(line.begin(), line.end(), is_blank);
    const auto *end = std::find_if(start, line.end(), is_blank);
    line = {end, line.end()};
    return {start, end};
}

std::uint64_t hex(std::string_view word) {
    if (word.starts_with("0x")) word.remove_prefix(2);
    std::uint64_t value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value, 16);
    return value;
}

template <class T> T decimal(std::string_view word) {
    T value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
}

/// maps writes a newline in a path as \012.
std::string unescape_path(std::string_view path) {
    std::string plain;
    for (std::size_t i = 0; i < path.size(); i++) {
        if (path.substr(i, 4) == "\\012") {
            plain += '\n';
            i += 3;
        } else {
            plain += path[i];
        }
    }
    return plain;
}

/// status writes a newline in a name as \n, and a backslash as two.
std::string unescape_name(std::string_view name) {
    std::string plain;
    for (std::size_t i = 0; i < name.size(); i++) {
        const bool escapes = name[i] == '\\' && i + 1 < name.size();
        if (escapes) i++;
        plain += escapes && name[i] == 'n' ? '\n' : name[i];
    }
    return plain;
}

std::optional<Mapping> parse_mapping(std::string_view line) {
    Mapping m;
    std::string_view range = take_word(line);
    std::size_t dash = range.find('-');
    std::string_view flags = take_word(line);
    if (dash == std::string_view::npos || flags.size() < 4) return std::nullopt;
    m.start = VirtAddr{hex(range.substr(0, dash))};
    m.end = VirtAddr{hex(range.substr(dash + 1))};
    m.readable = flags[0] == 'r';
    m.writable = flags[1] == 'w';
    m.executable = flags[2] == 'x';
    m.shared = flags[3] == 's';
    m.offset = hex(take_word(line));
    m.device = take_word(line);
    m.inode = decimal<std::uint64_t>(take_word(line));
    std::string_view path = text::trim(line);
    constexpr std::string_view deleted = " (deleted)";
    if (path.ends_with(deleted)) {
        m.deleted = true;
        path.remove_suffix(deleted.size());
    }
    m.path = unescape_path(path);
    return m;
}

} // namespace

std::vector<Mapping> parse_maps(std::string_view text) {
    std::vector<Mapping> mappings;
    for (std::string_view line : text::split(text, '\n'))
        if (auto mapping = parse_mapping(line)) mappings.push_back(std::move(*mapping));
    return mappings;
}

ProcessStatus parse_status(std::string_view text) {
    ProcessStatus status;
    for (std::string_view line : text::split(text, '\n')) {
        std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        std::string_view key = line.substr(0, colon);
        std::string_view rest = line.substr(colon + 1);
        if (key == "Name")
            status.name = unescape_name(text::trim(rest));
        else if (key == "State")
            status.state = text::trim(rest).empty() ? '?' : text::trim(rest)[0];
        else if (key == "Tgid")
            status.tgid = decimal<pid_t>(take_word(rest));
        else if (key == "PPid")
            status.ppid = decimal<pid_t>(take_word(rest));
        else if (key == "TracerPid")
            status.tracer = decimal<pid_t>(take_word(rest));
        else if (key == "Uid") {
            status.uid = decimal<std::uint32_t>(take_word(rest));
            status.euid = decimal<std::uint32_t>(take_word(rest));
        } else if (key == "SigBlk")
            status.blocked = hex(take_word(rest));
        else if (key == "SigIgn")
            status.ignored = hex(take_word(rest));
        else if (key == "SigCgt")
            status.caught = hex(take_word(rest));
        else if (key == "SigPnd" || key == "ShdPnd")
            status.pending |= hex(take_word(rest));
        else if (key == "Seccomp")
            status.seccomp = decimal<int>(take_word(rest));
        else if (key == "Seccomp_filters")
            status.seccomp_filters = decimal<int>(take_word(rest));
        else if (key == "voluntary_ctxt_switches")
            status.switches = decimal<std::uint64_t>(take_word(rest));
    }
    return status;
}

std::optional<TaskPlace> parse_task_place(std::string_view line) {
    TaskPlace place;
    line = text::trim(line);
    if (line.empty()) return std::nullopt;
    if (line == "running") {
        place.running = true;
        return place;
    }
    place.syscall = decimal<long>(take_word(line));
    if (place.syscall >= 0)
        for (std::uint64_t &argument : place.arguments) argument = hex(take_word(line));
    place.sp = VirtAddr{hex(take_word(line))};
    place.pc = VirtAddr{hex(take_word(line))};
    return place;
}

namespace {

/// The rest of a `stat` line behind the second field, the name, which may hold anything; empty: there is none.
std::string_view behind_name(std::string_view line) {
    const std::size_t name_end = line.rfind(')');
    return name_end == std::string_view::npos ? std::string_view() : line.substr(name_end + 1);
}

} // namespace

std::optional<TaskStat> parse_task_stat(std::string_view line) {
    constexpr int state_at = 3, caught_at = 34, processor_at = 39; // proc_pid_stat(5)
    std::string_view rest = behind_name(line), word = take_word(rest);
    if (word.size() != 1) return std::nullopt;
    TaskStat stat;
    stat.state = word.front();
    for (int at = state_at + 1; at <= processor_at; at++) {
        word = take_word(rest);
        if (at == caught_at) stat.caught = decimal<std::uint64_t>(word);
    }
    if (word.empty()) return std::nullopt;
    stat.processor = decimal<int>(word);
    return stat;
}

std::optional<std::string> read_file(const std::string &path) {
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return std::nullopt;
    std::string text;
    std::array<char, 16384> buffer;
    while (true) {
        ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return std::nullopt;
        if (got == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

namespace {
std::string proc(pid_t pid, std::string_view file) { return "/proc/" + std::to_string(pid) + "/" + std::string(file); }
std::string proc_task(Pid pid, Tid tid, std::string_view file) {
    return proc(pid.value, "task/" + std::to_string(tid.value) + "/" + std::string(file));
}
} // namespace

namespace {

/// A field of a `stat` file (proc(5) counts from 1; from the third on); empty: the task is gone.
std::string stat_field(const std::string &path, int number) {
    auto stat = read_file(path);
    if (!stat) return {};
    std::string_view rest = behind_name(*stat);
    std::string_view word;
    for (int at = 3; at <= number; at++) word = take_word(rest);
    return std::string(word);
}

/// By the task's own folder: for /proc/TID/stat the kernel sums up the times of all threads of the process.
std::string stat_field(pid_t pid_or_tid, int number) {
    return stat_field(proc_task(Pid{pid_or_tid}, Tid{pid_or_tid}, "stat"), number);
}

} // namespace

std::optional<TaskStat> read_task_stat(Pid pid, Tid tid) {
    const Fd file(::open(proc_task(pid, tid, "stat").c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 1024> line;
    const ssize_t got = file ? ::pread(file.get(), line.data(), line.size(), 0) : -1; // which gives all that fits
    return got > 0 ? parse_task_stat({line.data(), static_cast<std::size_t>(got)}) : std::nullopt;
}

std::uint64_t innermost_id(Tid tid) {
    const auto status = read_file(process_folder(Pid{tid.value}) + "/status");
    if (!status) return 0;
    for (std::string_view line : text::split(*status, '\n'))
        if (line.starts_with("NSpid:"))
            if (auto innermost = text::parse_u64(line.substr(line.rfind('\t') + 1))) return *innermost;
    return static_cast<std::uint64_t>(tid.value);
}

std::string_view Names::read(Pid pid, Tid tid) {
    Known &known = known_[static_cast<std::size_t>(tid.value) % most];
    ssize_t got = known.tid == tid && known.file ? ::pread(known.file.get(), text_.data(), text_.size(), 0) : -1;
    if (got <= 0) { // another one's, or of one that has ended, whose id is used again
        known = {tid, Fd(::open(proc_task(pid, tid, "comm").c_str(), O_RDONLY | O_CLOEXEC))};
        if (known.file) got = ::pread(known.file.get(), text_.data(), text_.size(), 0);
    }
    if (got > 0 && text_[static_cast<std::size_t>(got) - 1] == '\n') got--;
    return {text_.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

std::uint64_t processor_time_ms(Pid pid, Tid tid) {
    const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    std::uint64_t ticks = 0;
    for (int number : {14, 15}) { // utime, stime
        const std::string field = stat_field(proc_task(pid, tid, "stat"), number);
        ticks += decimal<std::uint64_t>(field);
    }
    return ticks * 1000 / per_second;
}

bool has_capability(int capability) {
    auto text = read_file("/proc/self/status");
    std::size_t at = text ? text->find("CapEff:\t") : std::string::npos;
    if (at == std::string::npos) return false;
    std::uint64_t set = 0;
    std::from_chars(text->data() + at + 8, text->data() + text->size(), set, 16);
    return (set >> capability & 1) != 0;
}

bool has_ended(Tid tid) {
    std::string state = stat_field(tid.value, 3);
    return state.empty() || state == "Z" || state == "X";
}

bool is_dying(Tid tid) {
    constexpr std::uint64_t exiting = 4; // PF_EXITING of the flags in stat, proc(5)
    const std::string flags = stat_field(tid.value, 9);
    if (flags.empty() || (decimal<std::uint64_t>(flags) & exiting) != 0) return true;
    auto status = read_status(tid.value);
    return !status || (status->pending & signal_bit(SIGKILL)) != 0;
}

bool has_memory(Tid tid) {
    const std::string size = stat_field(tid.value, 23); // vsize
    return !size.empty() && size != "0";
}

bool is_kernel_thread(pid_t pid) {
    constexpr std::uint64_t kernel_thread = 0x00200000; // PF_KTHREAD of include/linux/sched.h
    return (decimal<std::uint64_t>(stat_field(pid, 9)) & kernel_thread) != 0;
}

bool is_kernel_worker(Tid tid) {
    constexpr std::uint64_t io_worker = 0x10, user_worker = 0x4000; // PF_IO_WORKER, PF_USER_WORKER
    return (decimal<std::uint64_t>(stat_field(tid.value, 9)) & (io_worker | user_worker)) != 0;
}

std::string process_folder(Pid pid) {
    std::string folder = "/proc/" + std::to_string(pid.value);
    if (!has_ended(Tid{pid.value})) return folder;
    for (Tid tid : read_tasks(pid))
        if (!has_ended(tid)) return folder + "/task/" + std::to_string(tid.value);
    return folder;
}

std::optional<int> read_setting(const std::string &path) {
    auto text = read_file(path);
    int value = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return {};
    return value;
}

std::optional<std::vector<Mapping>> read_maps(Pid pid) {
    auto text = read_file(proc(pid.value, "maps"));
    if (!text || text->empty()) text = read_file(process_folder(pid) + "/maps");
    if (!text) return std::nullopt;
    return parse_maps(*text);
}

std::optional<ProcessStatus> read_status(pid_t pid_or_tid) {
    auto text = read_file(proc(pid_or_tid, "status"));
    if (!text || text->empty()) return std::nullopt;
    return parse_status(*text);
}

namespace {

/// By the instruction that made the call. The byte of it that is looked at is none that a trap takes the place of.
bool is_foreign(Pid pid, Tid tid, VirtAddr behind) {
    Fd memory(::open(proc_task(pid, tid, "mem").c_str(), O_RDONLY | O_CLOEXEC));
    std::byte last{};
    return memory && ::pread(memory.get(), &last, 1, static_cast<off_t>(behind.value - 1)) == 1 &&
           arch::Host::is_foreign_syscall(last);
}

} // namespace

std::optional<TaskPlace> read_task_place(Pid pid, Tid tid) {
    auto text = read_file(proc_task(pid, tid, "syscall"));
    if (!text) return std::nullopt;
    auto place = parse_task_place(*text);
    if (place && !place->running && place->syscall >= 0 && is_foreign(pid, tid, place->pc))
        place->syscall = static_cast<long>(arch::Host::own_syscall_number(static_cast<std::uint64_t>(place->syscall)));
    return place;
}

namespace {

/// The ids that the entries of a directory of /proc are.
template <class Id> std::vector<Id> read_ids(const std::string &path) {
    std::vector<Id> ids;
    DIR *dir = ::opendir(path.c_str());
    if (!dir) return ids;
    while (dirent *entry = ::readdir(dir))
        if (auto id = decimal<pid_t>(entry->d_name); id > 0) ids.push_back(Id{id});
    ::closedir(dir);
    return ids;
}

} // namespace

std::vector<Tid> read_tasks(Pid pid) { return read_ids<Tid>(proc(pid.value, "task")); }

std::vector<Pid> read_processes() { return read_ids<Pid>("/proc"); }

std::string read_sleep_function(Pid pid, Tid tid) {
    auto text = read_file(proc_task(pid, tid, "wchan"));
    return !text || *text == "0" ? std::string() : *text;
}

std::string read_comm(Pid pid, Tid tid) {
    auto text = read_file(proc_task(pid, tid, "comm"));
    if (!text) return {};
    if (text->ends_with('\n')) text->pop_back();
    return *text;
}

void wait_for_end(Pid pid) {
    Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid.value, 0)));
    if (!process) return;
    pollfd ended{process.get(), POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
}

std::optional<std::uint64_t> read_auxv(Pid pid, std::uint64_t type) {
    auto bytes = read_file(proc(pid.value, "auxv"));
    if (!bytes || bytes->empty()) bytes = read_file(process_folder(pid) + "/auxv");
    if (!bytes) return std::nullopt;
    struct Entry {
        std::uint64_t type, value;
    };
    for (std::size_t at = 0; at + sizeof(Entry) <= bytes->size(); at += sizeof(Entry)) {
        Entry entry;
        std::memcpy(&entry, bytes->data() + at, sizeof entry);
        if (entry.type == type) return entry.value;
    }
    return std::nullopt;
}

} // namespace ktrace::os
