#include "recovery/ledger.h"

#include <algorithm>

#include <sys/mman.h>

#include "os/proc/procfs.h"

namespace ktrace::recovery {

Ledger::Ledger() {
    // Zeroed, and only pages in use take memory.
    void *memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    shared_ = memory == MAP_FAILED ? nullptr : static_cast<Shared *>(memory);
}

Ledger::~Ledger() {
    if (shared_) ::munmap(shared_, sizeof(Shared));
}

void Ledger::cover(Pid pid, VirtAddr page) {
    if (!shared_) return;
    std::size_t used = shared_->used, free = used;
    for (std::size_t i = used; i-- > 0;) {
        pid_t known = shared_->entries[i].pid;
        if (known == pid.value) {
            shared_->entries[i].page = page.value;
            return;
        }
        if (known == 0) free = i;
    }
    if (free == most) return;
    shared_->entries[free].page = page.value;
    shared_->entries[free].pid = pid.value;
    shared_->used = std::max(used, free + 1);
}

void Ledger::drop(Pid pid) {
    if (!shared_) return;
    for (std::size_t i = 0; i < shared_->used; i++)
        if (shared_->entries[i].pid == pid.value) shared_->entries[i].pid = 0;
    forget_traps(pid);
    for (std::size_t i = 0; i < shared_->saved_used; i++)
        if (shared_->saved[i].saved.pid == pid) shared_->saved[i].tid = 0;
}

void Ledger::clear() {
    if (shared_) shared_->used = shared_->traps_used = shared_->saved_used = 0;
}

void Ledger::note(const PagelessTrap &trap) {
    if (!shared_ || shared_->traps_used == most_traps) return;
    TrapEntry &entry = shared_->traps[shared_->traps_used];
    entry.trap = trap;
    entry.pid = trap.pid.value;
    shared_->traps_used++;
}

void Ledger::forget_traps(Pid pid) {
    if (!shared_) return;
    std::size_t left = 0; // entries from the front, up to the last in use
    for (std::size_t i = 0; i < shared_->traps_used; i++) {
        if (shared_->traps[i].pid == pid.value) shared_->traps[i].pid = 0;
        if (shared_->traps[i].pid != 0) left = i + 1;
    }
    shared_->traps_used = left;
}

void Ledger::hand_over_traps(Pid from, Pid to) {
    if (!shared_) return;
    for (std::size_t i = 0; i < shared_->traps_used; i++) {
        if (shared_->traps[i].pid != from.value) continue;
        shared_->traps[i].trap.pid = to;
        shared_->traps[i].pid = to.value;
    }
}

std::vector<PagelessTrap> Ledger::pageless_traps() const {
    std::vector<PagelessTrap> all;
    if (!shared_) return all;
    for (std::size_t i = 0; i < shared_->traps_used && i < most_traps; i++)
        if (shared_->traps[i].pid != 0) all.push_back(shared_->traps[i].trap);
    return all;
}

std::vector<Covered> Ledger::covered() const {
    std::vector<Covered> all;
    if (!shared_) return all;
    for (std::size_t i = 0; i < shared_->used && i < most; i++)
        if (pid_t pid = shared_->entries[i].pid; pid != 0)
            all.push_back({Pid{pid}, VirtAddr{shared_->entries[i].page}});
    return all;
}

/// The task's entry; tid 0: a free one. Nothing: there is none.
Ledger::SavedEntry *Ledger::saved_entry(pid_t tid) {
    for (std::size_t i = 0; i < shared_->saved_used; i++)
        if (shared_->saved[i].tid == tid) return &shared_->saved[i];
    if (tid != 0 || shared_->saved_used == most_saved) return nullptr;
    return &shared_->saved[shared_->saved_used++];
}

void Ledger::save(const SavedState &saved) {
    if (!shared_) return;
    SavedEntry *entry = saved_entry(saved.tid.value);
    if (!entry) entry = saved_entry(0);
    if (!entry) return;
    entry->tid = 0;
    entry->saved = saved;
    entry->tid = saved.tid.value;
}

void Ledger::forget(Tid tid) {
    if (!shared_) return;
    if (SavedEntry *entry = saved_entry(tid.value)) entry->tid = 0;
}

void Ledger::keep(Tid task, const os::SyscallUserDispatch &own) {
    auto status = shared_ ? os::read_status(task.value) : std::nullopt;
    if (!status) return;
    const Pid pid{status->tgid};
    const auto all = covered(); // the call may be the one that makes the page
    if (std::none_of(all.begin(), all.end(), [&](const Covered &each) { return each.pid == pid; })) cover(pid, {});
    const SavedEntry *entry = saved_entry(task.value);
    SavedState saved = entry ? entry->saved : SavedState{};
    saved.pid = pid;
    saved.tid = task;
    saved.has_dispatch = true;
    saved.dispatch = own;
    save(saved);
}

void Ledger::forget_dispatch(Tid task) {
    const SavedEntry *entry = shared_ ? saved_entry(task.value) : nullptr;
    if (!entry) return;
    SavedState saved = entry->saved;
    saved.has_dispatch = false;
    if (saved.has_mask || saved.has_signal)
        save(saved);
    else
        forget(task);
}

std::vector<SavedState> Ledger::saved(Pid pid) const {
    std::vector<SavedState> all;
    if (!shared_) return all;
    for (std::size_t i = 0; i < shared_->saved_used && i < most_saved; i++)
        if (shared_->saved[i].tid != 0 && shared_->saved[i].saved.pid == pid) all.push_back(shared_->saved[i].saved);
    return all;
}

void Ledger::set_program(Pid pid) {
    if (shared_) shared_->program = pid.value;
}

Pid Ledger::program() const { return Pid{shared_ ? shared_->program.load() : 0}; }

} // namespace ktrace::recovery
