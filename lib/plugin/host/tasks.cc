#include "plugin/host/tasks.h"

#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

#include "plugin/host/guard.h"
#include "plugin/host/turns.h"

#include <linux/sched.h>

namespace ktrace::plugin::host {

namespace {

constexpr std::size_t most_idle = 4096; // threads that no call in flight holds

struct Known {
    task_struct *task;
    unsigned holders = 0;
};

std::unordered_map<std::int32_t, Known> by_tid;
std::unordered_map<std::uint64_t, task_struct *> by_comm; // the page of their comm
std::vector<task_struct *> shown;                         // those whose comm was read
std::int32_t current_pid = 0, current_tid = 0;
task_struct *now = nullptr;

static_assert(offsetof(task_struct, comm) % page_size == 0);

std::uint64_t comm_page(const task_struct *task) { return reinterpret_cast<std::uint64_t>(task->comm); }

task_struct *make_task(std::int32_t pid, std::int32_t tid) {
    void *memory = ::mmap(nullptr, sizeof(task_struct), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) leave_aborted("there is no memory for a task_struct");
    auto *task = static_cast<task_struct *>(memory);
    task->pid = tid;
    task->tgid = pid;
    task->own_mm.owner = pid;
    task->mm = task->active_mm = &task->own_mm;
    ::mprotect(task->comm, page_size, PROT_NONE);
    by_comm[comm_page(task)] = task;
    return task;
}

/// Threads come and go: those that are not needed are forgotten all at once.
void drop_idle() {
    std::erase_if(by_tid, [](const auto &entry) {
        if (entry.second.holders != 0) return false;
        by_comm.erase(comm_page(entry.second.task));
        std::erase(shown, entry.second.task);
        ::munmap(entry.second.task, sizeof(task_struct));
        return true;
    });
}

} // namespace

void set_current(std::int32_t pid, std::int32_t tid) {
    if (tid != current_tid || pid != current_pid) now = nullptr;
    current_pid = pid;
    current_tid = tid;
}

task_struct *current_task() {
    if (now) return now;
    Critical section;
    auto found = by_tid.find(current_tid);
    if (found == by_tid.end() || found->second.task->tgid != current_pid) {
        if (by_tid.size() >= most_idle) drop_idle();
        found = by_tid.insert_or_assign(current_tid, Known{make_task(current_pid, current_tid)}).first;
    }
    now = found->second.task;
    return now;
}

void hold_task(task_struct *task) {
    if (auto found = by_tid.find(task->pid); found != by_tid.end() && found->second.task == task)
        found->second.holders++;
}

void release_task(task_struct *task) {
    if (auto found = by_tid.find(task->pid); found != by_tid.end() && found->second.task == task)
        found->second.holders--;
}

bool fill_in_comm(std::uint64_t address) {
    auto found = by_comm.find(address / page_size * page_size);
    if (found == by_comm.end()) return false;
    task_struct *task = found->second;
    wire->tid = task->pid;
    wire->pid = task->tgid;
    ask(Request::comm);
    if (::mprotect(task->comm, page_size, PROT_READ | PROT_WRITE) != 0) return false;
    std::size_t size = ::strnlen(wire->text, sizeof task->comm - 1);
    std::memcpy(task->comm, wire->text, size);
    task->comm[size] = 0;
    shown.push_back(task);
    return true;
}

void forget_comms() {
    for (task_struct *task : shown) ::mprotect(task->comm, page_size, PROT_NONE);
    shown.clear();
}

} // namespace ktrace::plugin::host

extern "C" {

task_struct *ktrace_current() { return ktrace::plugin::host::current_task(); }

int ktrace_cpu() { return ::sched_getcpu(); }
}
