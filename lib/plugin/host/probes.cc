#include "plugin/host/probes.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "arch/plugin_host.h"
#include "plugin/host/tasks.h"
#include "plugin/host/turns.h"

#include <linux/kprobes.h>

namespace ktrace::plugin::host {

namespace {

struct RegisteredProbe {
    kprobe *probe = nullptr; // nullptr: the number is free
    char kind = 'k';
    void *owner = nullptr; // the jprobe, kretprobe or kprobe
};

std::vector<RegisteredProbe> registered; // by number
std::vector<std::uint32_t> free_numbers;
std::unordered_map<const kprobe *, std::uint32_t> numbers;

std::vector<kretprobe_instance *> calls; // by instance
std::vector<std::uint64_t> free_calls;

RegisteredProbe *find(std::uint32_t number) {
    return number < registered.size() && registered[number].probe ? &registered[number] : nullptr;
}

kretprobe *as_return(const RegisteredProbe &probe) { return static_cast<kretprobe *>(probe.owner); }

std::uint64_t begin_call(kretprobe *probe, std::uint64_t return_address) {
    Critical section;
    auto *call = static_cast<kretprobe_instance *>(std::calloc(1, sizeof(kretprobe_instance) + probe->data_size + 16));
    if (!call) return no_instance;
    call->rp = probe;
    call->ret_addr = reinterpret_cast<kprobe_opcode_t *>(return_address);
    call->task = current_task();
    hold_task(call->task);
    if (free_calls.empty()) {
        calls.push_back(call);
        return calls.size() - 1;
    }
    std::uint64_t instance = free_calls.back();
    free_calls.pop_back();
    calls[instance] = call;
    return instance;
}

void end_call(std::uint64_t instance) {
    if (instance >= calls.size() || !calls[instance]) return;
    Critical section;
    release_task(calls[instance]->task);
    std::free(calls[instance]);
    calls[instance] = nullptr;
    free_calls.push_back(instance);
}

/// The arguments of a guarded handler.
struct HandlerCall {
    RegisteredProbe probe;
    pt_regs *registers = nullptr;
    kretprobe_instance *call = nullptr;
    int trap = 0;
};

long call_pre(void *opaque) {
    auto &call = *static_cast<HandlerCall *>(opaque);
    auto *handler = call.probe.probe->pre_handler;
    return handler ? handler(call.probe.probe, call.registers) : 0;
}

long call_post(void *opaque) {
    auto &call = *static_cast<HandlerCall *>(opaque);
    if (auto *handler = call.probe.probe->post_handler) handler(call.probe.probe, call.registers, 0);
    return 0;
}

long call_fault(void *opaque) {
    auto &call = *static_cast<HandlerCall *>(opaque);
    auto *handler = call.probe.probe->fault_handler;
    return handler ? handler(call.probe.probe, call.registers, call.trap) : 0;
}

long call_begins(void *opaque) {
    auto &call = *static_cast<HandlerCall *>(opaque);
    auto *handler = as_return(call.probe)->entry_handler;
    return handler ? handler(call.call, call.registers) : 0;
}

long call_returned(void *opaque) {
    auto &call = *static_cast<HandlerCall *>(opaque);
    if (auto *handler = as_return(call.probe)->handler) handler(call.call, call.registers);
    return 0;
}

constexpr std::size_t entry_stack = std::size_t{1} << 20; // for entry's own frames
constexpr std::size_t entry_guard = std::size_t{1} << 16; // below it

/// The stack for a jprobe's entry: room for what is copied begins where this points. nullptr: there is no memory.
std::byte *entry_stack_top() {
    static std::byte *top = nullptr;
    if (top) return top;
    void *area = ::mmap(nullptr, entry_guard + entry_stack + 2 * page_size + most_stack, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED || ::mprotect(area, entry_guard, PROT_NONE) != 0) return nullptr;
    top = static_cast<std::byte *>(area) + entry_guard + entry_stack;
    return top;
}

/// A jprobe's entry runs on a copy of the thread's stack: it finds the same bytes above its stack pointer as the probed
/// function, and its changes there stay here.
long call_entry(void *opaque) {
    auto &call = *static_cast<HandlerCall *>(opaque);
    std::byte *top = entry_stack_top();
    if (!top) leave_aborted("there is no memory for a stack");
    // As far into a page as the thread's own, so that it is aligned the same.
    top += kernel_stack_pointer(call.registers) % page_size;
    std::size_t size = wire->stack_size < most_stack ? wire->stack_size : most_stack;
    std::memcpy(top, wire->stack, size);
    expect_return_to(wire->address);
    arch::enter_function(static_cast<jprobe *>(call.probe.owner)->entry, call.registers,
                         wire->has_floating ? wire->floating : nullptr, top);
}

pt_regs *wire_registers() { return reinterpret_cast<pt_regs *>(wire->registers); }

Left run_begin(HandlerCall call) {
    std::uint64_t instance = begin_call(as_return(call.probe), wire->address);
    Left left;
    left.result = 1;
    if (instance == no_instance) return left;
    call.call = calls[instance];
    left = guarded(call_begins, &call, call.probe.probe);
    if (left.ended != Ended::returned || left.result != 0)
        end_call(instance);
    else
        wire->instance = instance;
    return left;
}

Left run_return(HandlerCall call) {
    std::uint64_t instance = wire->instance;
    if (instance == no_instance) instance = begin_call(as_return(call.probe), wire->address);
    if (instance >= calls.size() || !calls[instance]) return {};
    call.call = calls[instance];
    Left left = guarded(call_returned, &call, call.probe.probe);
    end_call(instance);
    return left;
}

void take_note(RegisteredProbe &registered_probe, const Note &note) {
    kprobe &probe = *registered_probe.probe;
    switch (note.kind) {
    case Note::missed:
        probe.nmissed = note.value;
        if (registered_probe.kind == 'r') as_return(registered_probe)->nmissed = static_cast<int>(note.value);
        break;
    case Note::placed:
        probe.addr = reinterpret_cast<kprobe_opcode_t *>(note.value);
        probe.flags &= ~static_cast<u32>(KPROBE_FLAG_GONE);
        break;
    case Note::gone: probe.flags |= KPROBE_FLAG_GONE; break;
    default: break;
    }
}

} // namespace

void take_notes() {
    std::uint32_t count = wire->note_count < most_notes ? wire->note_count : most_notes;
    for (std::uint32_t i = 0; i < count; i++) {
        const Note &note = wire->notes[i];
        if (note.kind == Note::dropped) {
            end_call(note.value);
        } else if (RegisteredProbe *probe = find(note.probe)) {
            take_note(*probe, note);
        }
    }
    wire->note_count = 0;
}

Left run_handler(Call call) {
    RegisteredProbe *probe = find(wire->probe);
    if (!probe) return {};
    HandlerCall handler{*probe, wire_registers(), nullptr, wire->trap};
    switch (call) {
    case Call::pre: return guarded(call_pre, &handler, probe->probe);
    case Call::post: return guarded(call_post, &handler, probe->probe);
    case Call::fault: return guarded(call_fault, &handler, nullptr);
    case Call::entry: return guarded(call_entry, &handler, probe->probe);
    case Call::call: return run_begin(handler);
    case Call::ret: return run_return(handler);
    default: return {};
    }
}

void forget_probes() {
    registered.clear();
    numbers.clear();
}

namespace {

/// A probe that is to be registered, as the API was given it.
struct Wanted {
    kprobe *probe = nullptr;
    char kind = 'k';
    void *owner = nullptr;
    std::string symbol;
};

std::uint8_t handlers_of(const Wanted &wanted) {
    const kprobe &probe = *wanted.probe;
    bool before = probe.pre_handler, after = probe.post_handler;
    if (wanted.kind == 'j') before = true;
    if (wanted.kind == 'r') {
        auto *probe_of_return = static_cast<kretprobe *>(wanted.owner);
        before = probe_of_return->entry_handler;
        after = probe_of_return->handler;
    }
    return static_cast<std::uint8_t>((before ? has_before : 0) | (after ? has_after : 0) |
                                     (probe.fault_handler ? has_fault_handler : 0));
}

/// Puts a value into the bulk, padded. False: it is full.
bool put(const void *from, std::size_t size) {
    std::size_t room = padded(size);
    if (sizeof wire->bulk - wire->bulk_used < room) return false;
    std::memcpy(wire->bulk + wire->bulk_used, from, size);
    wire->bulk_used += static_cast<std::uint32_t>(room);
    return true;
}

std::uint32_t maxactive_of(kretprobe &probe) {
    if (probe.maxactive <= 0) {
        long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
        probe.maxactive = static_cast<int>(processors > 5 ? 2 * processors : 10);
    }
    return static_cast<std::uint32_t>(probe.maxactive);
}

bool put_wish(const Wanted &wanted, std::uint32_t number) {
    const kprobe &probe = *wanted.probe;
    ProbeWish wish;
    wish.probe = number;
    wish.kind = wanted.kind;
    wish.disabled = (probe.flags & KPROBE_FLAG_DISABLED) != 0;
    wish.handlers = handlers_of(wanted);
    if (wanted.kind == 'r') wish.maxactive = maxactive_of(*static_cast<kretprobe *>(wanted.owner));
    wish.symbol_size = static_cast<std::uint32_t>(wanted.symbol.size());
    wish.offset = probe.offset;
    wish.address = reinterpret_cast<std::uint64_t>(probe.addr);
    return put(&wish, sizeof wish) && put(wanted.symbol.data(), wanted.symbol.size());
}

std::uint32_t take_number(const Wanted &wanted) {
    Critical section;
    std::uint32_t number;
    if (free_numbers.empty()) {
        number = static_cast<std::uint32_t>(registered.size());
        registered.emplace_back();
    } else {
        number = free_numbers.back();
        free_numbers.pop_back();
    }
    registered[number] = {wanted.probe, wanted.kind, wanted.owner};
    numbers[wanted.probe] = number;
    return number;
}

void give_number_back(std::uint32_t number) {
    Critical section;
    numbers.erase(registered[number].probe);
    registered[number] = {};
    free_numbers.push_back(number);
}

/// Why it cannot be registered, before the tracer is asked; 0.
int check(const Wanted &wanted) {
    if (!wanted.probe || numbers.contains(wanted.probe)) return -EINVAL;
    bool by_name = wanted.probe->symbol_name != nullptr, by_address = wanted.probe->addr != nullptr;
    if (by_name == by_address) return -EINVAL;
    if (wanted.kind == 'j' && !static_cast<jprobe *>(wanted.owner)->entry) return -EINVAL;
    return 0;
}

int add(std::vector<Wanted> all) {
    if (all.empty()) return -EINVAL;
    std::unordered_set<const kprobe *> met; // one that is there twice is registered already the second time
    for (Wanted &wanted : all) {
        if (int error = check(wanted)) return error;
        if (!met.insert(wanted.probe).second) return -EINVAL;
        if (wanted.probe->symbol_name) wanted.symbol = wanted.probe->symbol_name;
    }
    wire->bulk_used = wire->count = 0;
    std::vector<std::uint32_t> taken;
    bool fits = true;
    for (const Wanted &wanted : all) {
        taken.push_back(take_number(wanted));
        fits = fits && put_wish(wanted, taken.back());
    }
    wire->count = static_cast<std::uint32_t>(all.size());
    std::int64_t error = fits ? ask(Request::add) : -E2BIG;
    if (error != 0) {
        for (std::uint32_t number : taken) give_number_back(number);
        return static_cast<int>(error);
    }
    std::vector<std::uint64_t> addresses(all.size());
    std::memcpy(addresses.data(), wire->bulk, addresses.size() * sizeof addresses[0]);
    for (std::size_t i = 0; i < all.size(); i++) {
        kprobe &probe = *all[i].probe;
        probe.addr = reinterpret_cast<kprobe_opcode_t *>(addresses[i]);
        probe.nmissed = 0;
        probe.flags &= KPROBE_FLAG_DISABLED;
        copy_guarded(&probe.opcode, probe.addr, 1);
        if (all[i].kind == 'r') static_cast<kretprobe *>(all[i].owner)->nmissed = 0;
    }
    return 0;
}

void remove(const std::vector<kprobe *> &all) {
    std::vector<std::uint64_t> leaving;
    std::unordered_set<const kprobe *> met;
    for (kprobe *probe : all) {
        if (!probe) continue;
        auto found = numbers.find(probe);
        if (found == numbers.end() || !met.insert(probe).second)
            probe->addr = nullptr; // it was not registered, or is no more
        else
            leaving.push_back(found->second);
    }
    if (leaving.empty()) return;
    wire->bulk_used = 0;
    wire->count = static_cast<std::uint32_t>(leaving.size());
    put(leaving.data(), leaving.size() * sizeof leaving[0]);
    ask(Request::remove);
    take_notes();
    for (std::uint64_t number : leaving) give_number_back(static_cast<std::uint32_t>(number));
}

int set_enabled(kprobe *probe, bool enabled) {
    auto found = numbers.find(probe);
    if (!probe || found == numbers.end()) return -EINVAL;
    wire->probe = found->second;
    auto error = static_cast<int>(ask(enabled ? Request::enable : Request::disable));
    if (error != 0) return error;
    probe->flags =
        enabled ? probe->flags & ~static_cast<u32>(KPROBE_FLAG_DISABLED) : probe->flags | KPROBE_FLAG_DISABLED;
    return 0;
}

kprobe *inner(kprobe *probe) { return probe; }
template <class P> kprobe *inner(P *probe) { return probe ? &probe->kp : nullptr; }

template <class P> int add_array(P **probes, int count, char kind) {
    if (!probes || count <= 0) return -EINVAL;
    std::vector<Wanted> all;
    for (int i = 0; i < count; i++) all.push_back({inner(probes[i]), kind, probes[i], {}});
    return add(std::move(all));
}

template <class P> void remove_array(P **probes, int count) {
    if (!probes || count <= 0) return;
    std::vector<kprobe *> all;
    for (int i = 0; i < count; i++) all.push_back(inner(probes[i]));
    remove(all);
}

} // namespace

} // namespace ktrace::plugin::host

using namespace ktrace::plugin::host;

extern "C" {

int register_kprobe(kprobe *probe) { return add_array(&probe, 1, 'k'); }
int register_kprobes(kprobe **probes, int count) { return add_array(probes, count, 'k'); }
int register_jprobe(jprobe *probe) { return add_array(&probe, 1, 'j'); }
int register_jprobes(jprobe **probes, int count) { return add_array(probes, count, 'j'); }
int register_kretprobe(kretprobe *probe) { return add_array(&probe, 1, 'r'); }
int register_kretprobes(kretprobe **probes, int count) { return add_array(probes, count, 'r'); }
void unregister_kprobe(kprobe *probe) { remove_array(&probe, 1); }
void unregister_kprobes(kprobe **probes, int count) { remove_array(probes, count); }
void unregister_jprobe(jprobe *probe) { remove_array(&probe, 1); }
void unregister_jprobes(jprobe **probes, int count) { remove_array(probes, count); }
void unregister_kretprobe(kretprobe *probe) { remove_array(&probe, 1); }
void unregister_kretprobes(kretprobe **probes, int count) { remove_array(probes, count); }
int enable_kprobe(kprobe *probe) { return set_enabled(probe, true); }
int disable_kprobe(kprobe *probe) { return set_enabled(probe, false); }
}
