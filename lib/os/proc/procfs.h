// The contents of /proc for a process. The parsers are pure (text in, data out); the readers open the files.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/addr.h"
#include "base/fd.h"
#include "base/ids.h"

namespace ktrace::os {

/// A line of /proc/PID/maps.
struct Mapping {
    VirtAddr start, end;
    bool readable = false, writable = false, executable = false, shared = false;
    std::uint64_t offset = 0;
    std::uint64_t inode = 0;
    std::string device; // major:minor, hex
    std::string path;   // [heap], [vdso] …, empty for anonymous memory; without " (deleted)"
    bool deleted = false;

    bool contains(VirtAddr at) const { return start <= at && at < end; }
};

/// The part of /proc/PID/status that ktrace needs. Missing lines leave the defaults.
struct ProcessStatus {
    std::string name;
    char state = '?'; // R S D T t Z X
    pid_t tgid = 0, ppid = 0, tracer = 0;
    std::uint32_t uid = 0, euid = 0;                    // real and effective
    std::uint64_t blocked = 0, ignored = 0, caught = 0; // SigBlk, SigIgn, SigCgt
    std::uint64_t pending = 0;                          // SigPnd and ShdPnd
    int seccomp = 0;                                    // the mode
    int seccomp_filters = 0;                            // how many judge its calls
    std::uint64_t switches = 0;                         // how often it went to sleep, or stopped
};

/// Where a task is, by /proc/PID/task/TID/syscall.
struct TaskPlace {
    bool running = false; // on a processor or waiting for one: nothing more is known
    long syscall = -1;    // the number it sleeps in, -1: blocked, but not in a system call
    std::uint64_t arguments[6] = {};
    VirtAddr sp, pc;
};

/// By /proc/PID/task/TID/stat, which costs less than half of `status`.
struct TaskStat {
    char state = '?';         // as ProcessStatus::state
    std::uint64_t caught = 0; // by its process, of the signals 1 to 31
    int processor = -1;       // that it runs on, or ran on last
};

std::vector<Mapping> parse_maps(std::string_view text);
ProcessStatus parse_status(std::string_view text);
std::optional<TaskPlace> parse_task_place(std::string_view line);
std::optional<TaskStat> parse_task_stat(std::string_view line);

/// nothing: the process or task is gone, or its file may not be read (errno).
std::optional<std::string> read_file(const std::string &path);
/// The number in a file of one line, a setting of the kernel's (/proc/sys); nothing: there is no such setting.
std::optional<int> read_setting(const std::string &path);
std::optional<std::vector<Mapping>> read_maps(Pid pid);
std::optional<ProcessStatus> read_status(pid_t pid_or_tid);
std::optional<TaskPlace> read_task_place(Pid pid, Tid tid);
std::optional<TaskStat> read_task_stat(Pid pid, Tid tid);

/// The number that a process, or task, has in its own pid namespace; 0: gone.
std::uint64_t innermost_id(Tid tid);

/// Names of tasks, for frequent questions: the files of those that were asked for last are kept open, some of them.
class Names {
  public:
    /// The name of a task, as it is now; empty: gone. Valid until the next call.
    std::string_view read(Pid pid, Tid tid);

  private:
    struct Known {
        Tid tid;
        Fd file;
    };
    static constexpr std::size_t most = 128;
    std::array<Known, most> known_; // each where its id says
    std::array<char, 64> text_;
};

/// For how long a task has run so far, in the kernel, too; 0: it is gone. In the kernel's clock ticks, usually 10 ms.
std::uint64_t processor_time_ms(Pid pid, Tid tid);
/// The ids of all its tasks; empty: gone.
std::vector<Tid> read_tasks(Pid pid);
/// All that are to be seen here.
std::vector<Pid> read_processes();
/// False for one that has ended, or is about to: its memory goes first. Kernel threads have none.
bool has_memory(Tid tid);
/// True for a task that has ended and is not reaped. A leader stays so until all its threads have ended.
bool has_ended(Tid tid);
/// True for one that has ended, is on its way out, or was killed and has still to see it: its tracees will be detached
/// in a moment.
bool is_dying(Tid tid);
/// True for a thread of the kernel's own, which has no program.
bool is_kernel_thread(pid_t pid);
/// True for a thread that the kernel works with inside of a process (io_uring, vhost): it never runs the program's code
/// and cannot be traced.
bool is_kernel_worker(Tid tid);
/// The folder with the files of a process: /proc/PID, or that of a thread where the leader has ended before the others
/// (its own files are empty then).
std::string process_folder(Pid pid);
/// The name of a task, as it is now; empty: gone.
std::string read_comm(Pid pid, Tid tid);

/// The function of the kernel's that a task sleeps in; "": it does not, or that is not known.
std::string read_sleep_function(Pid pid, Tid tid);
/// Waits until a process, which need not be a child, has ended.
void wait_for_end(Pid pid);
/// An entry of the auxiliary vector (AT_*).
std::optional<std::uint64_t> read_auxv(Pid pid, std::uint64_t type);

/// True where this process may use a capability (CAP_*, by CapEff in /proc/self/status).
bool has_capability(int capability);

} // namespace ktrace::os
