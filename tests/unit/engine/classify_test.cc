// The table of classify: every race that was met is a row.
#include "engine/space/classify.h"

#include <csignal>

#include <gtest/gtest.h>

namespace ktrace::engine {
namespace {

using arch::SlotPosition;
using Kind = os::Stop::Kind;

struct Row {
    const char *what;
    Facts facts;
    Verdict verdict;
};

Facts signal(int number, bool kernel, Over over, bool site, bool was_ours, SlotPosition slot, bool repeats = false) {
    return {Kind::signal, number, kernel, over, site, was_ours, slot, repeats, false};
}

Facts leftover(Facts facts) {
    facts.leftover = true;
    return facts;
}

Facts followed(Facts facts) {
    facts.follows = true;
    return facts;
}

Facts until_exec(Facts facts) {
    facts.until_exec = true;
    return facts;
}

Facts controls_job(Facts facts) {
    facts.controls_job = true;
    return facts;
}

Facts hit(bool silent, bool repeated, bool dispatched) {
    Facts facts = signal(SIGTRAP, true, Over::none, true, false, SlotPosition::elsewhere);
    facts.silent = silent;
    facts.repeated = repeated;
    facts.dispatched = dispatched;
    return facts;
}

/// A step that the program makes itself.
Facts own_step(Facts facts) {
    facts.behind = facts.own_step = true;
    return facts;
}

/// A breakpoint of its own, by perf_event_open(2).
Facts own_breakpoint(Facts facts) {
    facts.behind = true;
    return facts;
}

Facts before_access(Facts facts) {
    facts.before_access = true;
    return facts;
}

Facts event(Kind kind, Over over = Over::none) {
    return {kind, 0, false, over, false, false, SlotPosition::elsewhere, false, false};
}

const Row classes[] = {
    {"a trap at a site", signal(SIGTRAP, true, Over::none, true, false, SlotPosition::elsewhere), Verdict::hit},
    {"one that was counted before a signal was delivered there", hit(false, true, false), Verdict::hit_again},
    {"one in a vfork child that is not followed", hit(true, false, false), Verdict::hit_again},
    {"one at a system call under syscall user dispatch", hit(false, false, true), Verdict::hit_dispatched},
    {"the same, of one that was counted, in a child that is not followed", hit(true, true, true),
     Verdict::hit_dispatched},
    {"a watched write, and a site of ours ends where the pc is",
     {Kind::signal, SIGTRAP, true, Over::none, true, false, SlotPosition::elsewhere, false, true},
     Verdict::watched},
    {"a watched write by a copy in a slot",
     {Kind::signal, SIGTRAP, true, Over::none, false, false, SlotPosition::after, false, true},
     Verdict::watched},
    {"a watched write by a copy that is stepped",
     {Kind::signal, SIGTRAP, true, Over::stepping, false, false, SlotPosition::after, false, true},
     Verdict::step_done},
    {"a debug register that stops the task before its access",
     before_access({Kind::signal, SIGTRAP, true, Over::none, false, false, SlotPosition::elsewhere, false, true}),
     Verdict::before_access},
    {"the same, of a copy that is stepped",
     before_access({Kind::signal, SIGTRAP, true, Over::stepping, false, false, SlotPosition::at_start, false, true}),
     Verdict::before_access},
    {"a step of the program's own that leads to behind a one-byte instruction at a site",
     own_step(signal(SIGTRAP, true, Over::none, true, false, SlotPosition::elsewhere)), Verdict::deliver},
    {"the same, where a site was", own_step(signal(SIGTRAP, true, Over::none, false, true, SlotPosition::elsewhere)),
     Verdict::deliver},
    {"a step of the program's own, of a copy in a slot",
     own_step(signal(SIGTRAP, true, Over::none, false, false, SlotPosition::after)), Verdict::deliver_behind},
    {"a step of the program's own, of an instruction that writes what is watched",
     own_step({Kind::signal, SIGTRAP, true, Over::none, false, false, SlotPosition::elsewhere, false, true}),
     Verdict::deliver},
    {"a breakpoint of the program's own behind a one-byte instruction at a site",
     own_breakpoint(signal(SIGTRAP, true, Over::none, true, false, SlotPosition::elsewhere)), Verdict::deliver},
    {"a trap that was disarmed before its stop was seen",
     signal(SIGTRAP, true, Over::none, false, true, SlotPosition::elsewhere), Verdict::late_trap},
    {"the program's own int3", signal(SIGTRAP, true, Over::none, false, false, SlotPosition::elsewhere),
     Verdict::deliver},
    {"kill -TRAP while the pc is just behind a one-byte instruction at a site",
     signal(SIGTRAP, false, Over::none, true, false, SlotPosition::elsewhere), Verdict::deliver},
    {"a single step of a ktrace that was killed",
     leftover(signal(SIGTRAP, true, Over::none, false, false, SlotPosition::elsewhere)), Verdict::go_on},
    {"the end of a step", signal(SIGTRAP, true, Over::stepping, false, false, SlotPosition::after), Verdict::step_done},
    {"a step that ended where a site is", signal(SIGTRAP, true, Over::stepping, true, false, SlotPosition::elsewhere),
     Verdict::step_done},
    {"kill -TRAP before the step was taken",
     signal(SIGTRAP, false, Over::stepping, false, false, SlotPosition::at_start), Verdict::hold},
    {"a timer before the step was taken", signal(SIGALRM, false, Over::stepping, false, false, SlotPosition::at_start),
     Verdict::hold},
    {"the stepped copy faults", signal(SIGSEGV, true, Over::stepping, false, false, SlotPosition::at_start),
     Verdict::step_fault},
    {"kill -SEGV during a step is no fault",
     signal(SIGSEGV, false, Over::stepping, false, false, SlotPosition::at_start), Verdict::hold},
    {"a timer, nothing of the copy done", signal(SIGALRM, false, Over::none, false, false, SlotPosition::at_start),
     Verdict::hold},
    {"a timer, the copy done", signal(SIGALRM, false, Over::none, false, false, SlotPosition::after),
     Verdict::deliver_behind},
    {"a timer in the middle of a longer slot", signal(SIGALRM, false, Over::none, false, false, SlotPosition::inside),
     Verdict::hold},
    {"the program steps itself through a call that is made in a slot",
     signal(SIGTRAP, true, Over::none, false, false, SlotPosition::inside), Verdict::hold},
    {"the jump of a call through memory faults", signal(SIGSEGV, true, Over::none, false, false, SlotPosition::inside),
     Verdict::deliver_fault},
    {"a timer in a repeated string instruction",
     signal(SIGALRM, false, Over::none, false, false, SlotPosition::at_start, true), Verdict::deliver_retry},
    {"SIGSTOP, on the way to a system call",
     controls_job(signal(SIGSTOP, false, Over::to_syscall, false, false, SlotPosition::at_start)), Verdict::deliver},
    {"SIGSTOP in a step: SIGCONT can take it back only while it is not held",
     controls_job(signal(SIGSTOP, false, Over::stepping, false, false, SlotPosition::at_start)), Verdict::deliver},
    {"SIGSTOP in a step that is almost done",
     controls_job(signal(SIGSTOP, false, Over::stepping, false, false, SlotPosition::after)), Verdict::deliver},
    {"SIGSTOP, nothing of the copy done",
     controls_job(signal(SIGSTOP, false, Over::none, false, false, SlotPosition::at_start)), Verdict::deliver},
    {"SIGSTOP, the copy done", controls_job(signal(SIGSTOP, false, Over::none, false, false, SlotPosition::after)),
     Verdict::deliver_behind},
    {"SIGCONT in a step: sent again, it would take back the next SIGSTOP",
     controls_job(signal(SIGCONT, false, Over::stepping, false, false, SlotPosition::at_start)), Verdict::deliver},
    {"SIGCONT in a step, with a handler", signal(SIGCONT, false, Over::stepping, false, false, SlotPosition::at_start),
     Verdict::hold},
    {"SIGTSTP in the middle of a longer slot",
     controls_job(signal(SIGTSTP, false, Over::none, false, false, SlotPosition::inside)), Verdict::deliver},
    {"SIGTSTP there, with a handler", signal(SIGTSTP, false, Over::none, false, false, SlotPosition::inside),
     Verdict::hold},
    {"the boosted copy faults", signal(SIGSEGV, true, Over::none, false, false, SlotPosition::at_start),
     Verdict::deliver_fault},
    {"a signal elsewhere", signal(SIGUSR1, false, Over::none, false, false, SlotPosition::elsewhere), Verdict::deliver},
    {"a fault of the program's own", signal(SIGSEGV, true, Over::none, false, false, SlotPosition::elsewhere),
     Verdict::deliver},
    {"the copy has entered its system call", event(Kind::syscall, Over::to_syscall), Verdict::syscall_entered},
    {"and left it", event(Kind::syscall, Over::in_syscall), Verdict::syscall_left},
    {"a system-call stop that nobody asked for", event(Kind::syscall), Verdict::go_on},
    {"a system-call stop of a task that is let go at an exec", until_exec(event(Kind::syscall)), Verdict::own_syscall},
    {"one in a handler that is followed to its return", followed(event(Kind::syscall)), Verdict::handler_syscall},
    {"a probed one in such a handler", followed(event(Kind::syscall, Over::to_syscall)), Verdict::syscall_entered},
    {"its way through a slot into a probed one", until_exec(event(Kind::syscall, Over::to_syscall)),
     Verdict::syscall_entered},
    {"job control", event(Kind::group), Verdict::group_stop},
    {"job control during a step", event(Kind::group, Over::stepping), Verdict::group_stop},
    {"SIGCONT after it, or our interrupt", event(Kind::started, Over::stepping), Verdict::go_on},
    {"a new thread", event(Kind::clone), Verdict::new_task},
    {"a new process", event(Kind::fork), Verdict::new_process},
    {"posix_spawn", event(Kind::vfork), Verdict::new_process},
    {"exec", event(Kind::exec), Verdict::exec},
    {"exit", event(Kind::exited), Verdict::ended},
    {"kill -9 during a step", event(Kind::killed, Over::stepping), Verdict::ended},
};

TEST(Classify, EveryRow) {
    for (const Row &row : classes) EXPECT_EQ(classify(row.facts), row.verdict) << row.what;
}

TEST(WayOn, EveryRow) {
    struct {
        const char *what;
        bool steps;
        Over over;
        bool at_calls, trap_pending;
        os::Resume way;
    } const ways[] = {
        {"on its own", false, Over::none, false, false, os::Resume::run},
        {"in a step", true, Over::stepping, false, false, os::Resume::step},
        {"an interrupt's stop between a step's end and its SIGTRAP", true, Over::stepping, false, true,
         os::Resume::run},
        {"on its way to a system call", false, Over::to_syscall, false, false, os::Resume::syscall},
        {"in it", false, Over::in_syscall, false, false, os::Resume::syscall},
        {"let go at an exec, or in a handler that is followed", false, Over::none, true, false, os::Resume::syscall},
        {"let go at an exec, in a step", true, Over::stepping, true, false, os::Resume::step},
        {"an access that is watched, before it", true, Over::none, false, false, os::Resume::step},
    };
    for (const auto &row : ways)
        EXPECT_EQ(way_on(row.steps, row.over, row.at_calls, row.trap_pending), row.way) << row.what;
}

TEST(Classify, DeathWinsOverEverything) {
    for (Over over : {Over::none, Over::stepping, Over::to_syscall, Over::in_syscall})
        for (bool site : {false, true}) {
            Facts facts = event(Kind::killed, over);
            facts.site = site;
            EXPECT_EQ(classify(facts), Verdict::ended);
        }
}

} // namespace
} // namespace ktrace::engine
