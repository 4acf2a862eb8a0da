#include "plugin/host/guard.h"

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/plugin_host.h"
#include "plugin/host/mirror.h"
#include "plugin/host/tasks.h"
#include "plugin/host/turns.h"

#include <linux/kprobes.h>

namespace ktrace::plugin::host {

namespace {

constexpr std::size_t signal_stack_size = std::size_t{1} << 18;
constexpr unsigned most_handled = 1000; // faults at one place that a fault_handler says it has handled, in a row

enum Jump : int { jump_none, jump_faulted, jump_late, jump_aborted, jump_entry_left, jump_entry_returned };

sigjmp_buf way_out, copy_way_out;
volatile std::sig_atomic_t guarding = 0, copying = 0, late = 0, in_fault_handler = 0, critical = 0;
kprobe *guarded_probe = nullptr;
volatile std::uint64_t awaited_return = 0;
std::uint64_t last_fault_pc = 0;
unsigned handled_there = 0;

[[noreturn]] void leave(Jump why) { siglongjmp(way_out, why); }

/// Where an address of the plugin's is: `handler_pre+0x1c`, else `probe.so+0x11c6`.
int describe_place(char *into, std::size_t size, std::uint64_t pc) {
    Dl_info place{};
    if (::dladdr(reinterpret_cast<void *>(pc), &place) == 0) return 0;
    if (place.dli_sname)
        return std::snprintf(into, size, ", in %.200s+0x%zx", place.dli_sname,
                             static_cast<std::size_t>(pc - reinterpret_cast<std::uint64_t>(place.dli_saddr)));
    const char *file = std::strrchr(place.dli_fname, '/');
    return std::snprintf(into, size, ", in %.200s+0x%zx", file ? file + 1 : place.dli_fname,
                         static_cast<std::size_t>(pc - reinterpret_cast<std::uint64_t>(place.dli_fbase)));
}

/// The text for a fault: `SIGSEGV at 0x10, in probe.so+0x11c6`.
void describe(int signal, const siginfo_t &info, std::uint64_t pc) {
    bool memory = signal == SIGSEGV || signal == SIGBUS;
    const char *abbreviation = ::sigabbrev_np(signal);
    int used = std::snprintf(wire->text, sizeof wire->text, "SIG%s", abbreviation ? abbreviation : "?");
    auto rest = [&] { return sizeof wire->text - static_cast<std::size_t>(used); };
    if (memory && info.si_code != SI_KERNEL) used += std::snprintf(wire->text + used, rest(), " at %p", info.si_addr);
    describe_place(wire->text + used, rest(), pc);
    wire->address = memory ? reinterpret_cast<std::uint64_t>(info.si_addr) : 0;
}

/// Lets the probe's own fault_handler have a try. True: the interrupted function goes on.
bool handled_by_plugin(int signal, ucontext_t &context) {
    kprobe *probe = guarded_probe;
    if (!probe || !probe->fault_handler || in_fault_handler) return false;
    std::uint64_t pc = arch::pc_of(context);
    handled_there = pc == last_fault_pc ? handled_there + 1 : 0;
    last_fault_pc = pc;
    if (handled_there >= most_handled) return false;
    pt_regs registers;
    arch::from_context(context, registers);
    in_fault_handler = 1;
    int handled = probe->fault_handler(probe, &registers, arch::trap_number(signal, context));
    in_fault_handler = 0;
    if (handled != 0) arch::to_context(registers, context);
    return handled != 0;
}

[[noreturn]] void die_of(int signal) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
    ::_exit(128 + signal);
}

void on_fault(int signal, siginfo_t *info, void *opaque) {
    auto &context = *static_cast<ucontext_t *>(opaque);
    std::uint64_t pc = arch::pc_of(context);
    bool memory = (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0 && info->si_code != SI_KERNEL;
    if (memory && guarding) {
        auto at = reinterpret_cast<std::uint64_t>(info->si_addr);
        if (awaited_return != 0 && at == awaited_return && pc == at) leave(jump_entry_returned);
        if (bring_in(at, arch::was_write(context)) || fill_in_comm(at)) return;
    }
    if (copying) siglongjmp(copy_way_out, 1);
    if (!guarding) die_of(signal);
    if (signal != SIGABRT && handled_by_plugin(signal, context)) return;
    describe(signal, *info, pc);
    leave(signal == SIGABRT ? jump_aborted : jump_faulted);
}

void on_alarm(int) {
    if (!guarding) return;
    // With a question asked it is ktrace's turn.
    if (critical || wire->turn.load(std::memory_order_acquire) != turn_host)
        late = 1;
    else
        leave(jump_late);
}

const char *current_exception() {
    static char what[400];
    try {
        throw;
    } catch (const std::exception &exception) {
        std::snprintf(what, sizeof what, "%s", exception.what());
        return what;
    } catch (...) {
        return "";
    }
}

/// In a frame without objects: the ways out jump over it.
Left run(long (*function)(void *), void *argument) {
    Left left;
    try {
        left.result = function(argument);
    } catch (...) {
        left.ended = Ended::threw;
        std::snprintf(wire->text, sizeof wire->text, "%s", current_exception());
    }
    return left;
}

} // namespace

void install_guard() {
    stack_t stack{};
    stack.ss_size = signal_stack_size;
    stack.ss_sp = ::mmap(nullptr, signal_stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) ::sigaction(signal, &action, nullptr);
    action.sa_handler = on_alarm;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    ::sigaction(SIGALRM, &action, nullptr);
}

Left guarded(long (*function)(void *), void *argument, kprobe *probe) {
    guarded_probe = probe;
    late = 0;
    in_fault_handler = 0;
    copying = 0;
    critical = 0;
    handled_there = 0;
    last_fault_pc = 0;
    awaited_return = 0;
    wire->text[0] = 0;
    Left left;
    // The mask need not be saved: no handler of ours blocks anything.
    switch (sigsetjmp(way_out, 0)) {
    case jump_none:
        guarding = 1;
        left = run(function, argument);
        break;
    case jump_faulted: left.ended = Ended::faulted; break;
    case jump_late: left.ended = Ended::late; break;
    case jump_aborted: left.ended = Ended::aborted; break;
    case jump_entry_returned: left.by_return = true; break;
    default: break;
    }
    guarding = 0;
    guarded_probe = nullptr;
    return left;
}

void leave_entry() {
    if (!guarding) die_of(SIGABRT);
    leave(jump_entry_left);
}

void expect_return_to(std::uint64_t address) { awaited_return = address; }

void leave_aborted(const char *why) {
    if (!guarding) die_of(SIGABRT);
    std::snprintf(wire->text, sizeof wire->text, "%s", why);
    leave(jump_aborted);
}

void leave_if_late() {
    if (guarding && late && !critical) leave(jump_late);
}

Critical::Critical() { critical = critical + 1; }
Critical::~Critical() { critical = critical - 1; }

std::size_t copy_guarded(void *to, const void *from, std::size_t size) {
    volatile std::size_t done = 0;
    auto outer = copying;
    sigjmp_buf outer_way_out;
    std::memcpy(&outer_way_out, &copy_way_out, sizeof outer_way_out);
    if (sigsetjmp(copy_way_out, 0) == 0) {
        copying = 1;
        while (done < size) {
            // Up to the next page of either side, so that all bytes before a fault are copied.
            std::uint64_t source = reinterpret_cast<std::uint64_t>(from) + done;
            std::uint64_t destination = reinterpret_cast<std::uint64_t>(to) + done;
            std::size_t step = page_size - source % page_size;
            if (page_size - destination % page_size < step) step = page_size - destination % page_size;
            if (size - done < step) step = size - done;
            std::memcpy(static_cast<char *>(to) + done, static_cast<const char *>(from) + done, step);
            done = done + step;
        }
    }
    copying = outer;
    std::memcpy(&copy_way_out, &outer_way_out, sizeof outer_way_out);
    return done;
}

long length_guarded(const char *text, std::size_t most) {
    volatile bool faulted = false;
    volatile std::size_t length = 0;
    if (sigsetjmp(copy_way_out, 0) == 0) {
        copying = 1;
        while (length < most && text[length] != 0) length = length + 1;
    } else {
        faulted = true;
    }
    copying = 0;
    return faulted ? -1 : static_cast<long>(length);
}

} // namespace ktrace::plugin::host

extern "C" {

void jprobe_return() { ktrace::plugin::host::leave_entry(); }

void panic(const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    ktrace_vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ktrace::plugin::host::leave_aborted(text);
}
}
