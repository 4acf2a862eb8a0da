// A stub: two words, its count and the program's rax, then code that counts without flags and without a stack, then the
// copies.
#include "tests/isa/x86_64/planted.h"

#if defined(__x86_64__)

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/check.h"
#include "jump/page.h"
#include "symbols/module.h"
#include "tests/isa/x86_64/detoured.h"
#include "tests/isa/x86_64/hex.h"
#include "x86_64/x86_64.h"

// Calls one function with nothing in the registers but its arguments, on a stack of its own, and steps it if asked.
// rdi: function, rsi, rdx, rcx: arguments, r8: the end of the stack, r9: 0x100 to step
asm(R"(
    .pushsection .text
    .type detoured_call, @function
    .globl detoured_call
    .hidden detoured_call
detoured_call:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, -16(%r8)
    lea -16(%r8), %rsp
    mov %rdi, %r11
    mov %rsi, %rdi
    mov %rdx, %rsi
    mov %rcx, %rdx
    pushf
    or %r9, (%rsp)
    popf
    xor %ebx, %ebx
    xor %ebp, %ebp
    xor %ecx, %ecx
    xor %r8d, %r8d
    xor %r9d, %r9d
    xor %r10d, %r10d
    xor %r12d, %r12d
    xor %r13d, %r13d
    xor %r14d, %r14d
    xor %r15d, %r15d
    xor %eax, %eax
    call *%r11
    pushf
    andl $~0x100, (%rsp)
    popf
    mov (%rsp), %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .size detoured_call, . - detoured_call
    .popsection
)");

extern "C" std::uint64_t detoured_call(ktrace::test::Detoured::Call call, std::uint64_t, std::uint64_t, std::uint64_t *,
                                       std::byte *stack_end, std::uint64_t flags);

namespace ktrace::test {

namespace {

using arch::Window;
using arch::X86_64;
using arch::X86_64Detour;
using jump::Mapped;

constexpr std::uint64_t trap_flag = 0x100, resume_flag = 0x10000;
constexpr std::size_t head_at = 16, copies_at = head_at + 32, stub_size = 256, all_stubs = 4096 * stub_size;
constexpr std::size_t most_states = 1 << 18, stack_size = 1 << 18;

std::uint64_t address_of(const void *at) { return reinterpret_cast<std::uint64_t>(at); }
std::byte *bytes_at(VirtAddr at) { return reinterpret_cast<std::byte *>(at.value); }
std::uint64_t word_at(VirtAddr at) {
    std::uint64_t word;
    std::memcpy(&word, bytes_at(at), sizeof word);
    return word;
}
void write(VirtAddr at, std::span<const std::byte> bytes) { std::memcpy(bytes_at(at), bytes.data(), bytes.size()); }

bool in_section(VirtAddr at) {
    return at.value >= address_of(__start_detoured) && at.value < address_of(__stop_detoured);
}

/// One detour, and the bytes that it replaces.
struct Detour {
    VirtAddr site, stub, landing;
    Window window;
    arch::Copies copies;
    std::vector<std::byte> original, jump;
    bool planted = false;
};

/// All that the handler uses: there is one thread.
struct Shared {
    std::map<VirtAddr, Detour> detours; // by site
    std::map<VirtAddr, Detour *> stubs; // by stub
    std::vector<State> states;
    std::vector<std::string> problems;
    std::uint64_t traps = 0;
    Detour *waiting = nullptr; // for a thread at `boundary`
    VirtAddr boundary;
    std::byte at_boundary{};
} shared;

void problem(const char *what, VirtAddr at) {
    char text[128];
    std::snprintf(text, sizeof text, "%s at %#lx", what, at.value - address_of(__start_detoured));
    if (shared.problems.size() < 20) shared.problems.emplace_back(text);
}

void plant(Detour &detour) {
    write(detour.site, detour.jump);
    detour.planted = true;
}

/// The detour with an inner boundary at an address, and the copy that goes on there.
std::optional<VirtAddr> entry_at(VirtAddr at) {
    auto each = shared.detours.upper_bound(at);
    if (each == shared.detours.begin()) return std::nullopt;
    const Detour &detour = std::prev(each)->second;
    if (!detour.planted) return std::nullopt;
    for (const arch::Copies::Entry &entry : detour.copies.entries)
        if (entry.offset != 0 && detour.site + entry.offset == at)
            return detour.stub + static_cast<std::int64_t>(copies_at + entry.at);
    return std::nullopt;
}

/// Is the copy that an entry leads to shown as the place that it is the entry for?
bool is_shown(const Detour &detour, const arch::Copies::Entry &entry) {
    return std::any_of(detour.copies.shown.begin(), detour.copies.shown.end(), [&](const auto &shown) {
        return shown.at == entry.at && shown.pc == detour.site + entry.offset && shown.pushed == 0;
    });
}

void add_state(const State &state) {
    if (!shared.states.empty() && shared.states.back() == state) return;
    if (shared.states.size() < most_states)
        shared.states.push_back(state);
    else
        problem("too many states", VirtAddr{state[state_pc]});
}

/// The program's own state, where it is one: not within the code that counts.
void note(const greg_t *registers) {
    State state;
    std::copy_n(registers, state.size(), state.begin());
    state[state_flags] &= ~(trap_flag | resume_flag);
    const VirtAddr pc{state[state_pc]};
    if (in_section(pc)) return add_state(state);
    auto each = shared.stubs.upper_bound(pc);
    if (each == shared.stubs.begin()) return;
    const Detour &detour = *std::prev(each)->second;
    const std::int64_t offset = pc - (detour.stub + static_cast<std::int64_t>(copies_at));
    if (offset < 0 || offset >= static_cast<std::int64_t>(detour.copies.bytes.size())) return;
    for (const arch::Copies::Shown &shown : detour.copies.shown) {
        if (shown.at != offset) continue;
        state[state_pc] = shown.pc.value;
        state[state_sp] += shown.pushed;
        return add_state(state);
    }
    problem("a pc in the copies that is not shown, of the detour", detour.site);
}

/// Goes on in the copies, or plants the detour that waits for a thread here.
void at_trap(VirtAddr at, greg_t &pc) {
    if (shared.waiting != nullptr && at == shared.boundary) {
        *bytes_at(at) = shared.at_boundary;
        plant(*shared.waiting);
        shared.waiting = nullptr;
        pc = static_cast<greg_t>(at.value);
        return;
    }
    const auto entry = entry_at(at);
    if (!entry) {
        char text[128];
        const int size = std::snprintf(text, sizeof text, "a trap that is no boundary: %#lx (section at %#lx)\n",
                                       at.value, address_of(__start_detoured));
        if (::write(STDERR_FILENO, text, static_cast<std::size_t>(size)) < 0) ::_exit(4);
        ::_exit(3);
    }
    ++shared.traps;
    pc = static_cast<greg_t>(entry->value);
}

void on_signal(int number, siginfo_t *info, void *context) {
    greg_t *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    const VirtAddr pc{static_cast<std::uint64_t>(registers[REG_RIP])};
    if (number == SIGTRAP && info->si_code == TRAP_TRACE) return note(registers);
    at_trap(number == SIGTRAP ? X86_64::trap_address(pc) : pc, registers[REG_RIP]);
}

/// This process's mappings, as a tracer would see them.
std::vector<jump::Free> free_here() {
    std::ifstream maps("/proc/self/maps");
    std::vector<Mapped> mapped;
    for (std::string line; std::getline(maps, line);) {
        unsigned long start = 0, end = 0;
        KT_CHECK(std::sscanf(line.c_str(), "%lx-%lx", &start, &end) == 2);
        const bool heap = line.ends_with("[heap]"), stack = line.ends_with("[stack]");
        const auto grows = heap ? Mapped::Grows::up : stack ? Mapped::Grows::down : Mapped::Grows::no;
        mapped.push_back({VirtAddr{start}, VirtAddr{end}, grows});
    }
    std::erase_if(mapped, [](const Mapped &each) { return each.start.value >> 47 != 0; }); // vsyscall
    return jump::free_ranges(mapped, {});
}

/// The ranges that detours of the section reach.
std::vector<jump::Free> free_within_reach() {
    constexpr std::int64_t reach = 0x70000000;
    const VirtAddr section{address_of(__start_detoured)};
    std::vector<jump::Free> all = free_here();
    for (jump::Free &each : all) {
        each.start = std::max(each.start, VirtAddr{(section - reach).value & ~(jump::page_size - 1)});
        each.end = std::min(each.end, VirtAddr{(section + reach).value & ~(jump::page_size - 1)});
    }
    std::erase_if(all, [](const jump::Free &each) { return each.start >= each.end; });
    return all;
}

/// Memory for code at a place that was free.
void map(VirtAddr at, std::size_t size) {
    void *const mapped = ::mmap(bytes_at(at), size, PROT_READ | PROT_WRITE | PROT_EXEC,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    KT_CHECK(mapped == bytes_at(at));
}

/// The memory of the stubs, in the nearest range that has room.
VirtAddr map_stubs() {
    const std::vector<jump::Free> free = free_within_reach();
    const VirtAddr section{address_of(__start_detoured)};
    const auto away = [section](const jump::Free &each) {
        return each.start > section ? each.start - section : section - each.end;
    };
    const jump::Free *nearest = nullptr;
    for (const jump::Free &each : free)
        if (each.end - each.start >= 4 * static_cast<std::int64_t>(all_stubs) &&
            (nearest == nullptr || away(each) < away(*nearest)))
            nearest = &each;
    KT_CHECK(nearest != nullptr);
    const VirtAddr at = nearest->start > section ? nearest->start : nearest->end - static_cast<std::int64_t>(all_stubs);
    map(at, all_stubs);
    return at;
}

/// The head of a stub, without its first two words: rax is kept, one is added to the count, rax is put back.
std::vector<std::byte> counting_code() {
    return hex("48 89 05 f1 ff ff ff 48 8b 05 e2 ff ff ff 48 8d 40 01 48 89 05 d7 ff ff ff 48 8b 05 d8 ff ff ff");
}

void use_handlers() {
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    for (int number : {SIGTRAP, SIGILL}) KT_CHECK(::sigaction(number, &action, nullptr) == 0);
}

void make_text_writable() {
    const std::uint64_t start = address_of(__start_detoured) & ~(jump::page_size - 1);
    const std::uint64_t size = address_of(__stop_detoured) - start;
    KT_CHECK(::mprotect(bytes_at(VirtAddr{start}), size, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
}

bool holds(std::span<const std::pair<VirtAddr, VirtAddr>> ranges, VirtAddr at) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [at](const auto &each) { return at >= each.first && at < each.second; });
}

} // namespace

std::vector<DetouredFunction> detoured_functions() {
    const auto module = symbols::Module::open("/proc/self/exe", "self");
    KT_CHECK(module);
    const auto known = (*module)->named("detoured_call");
    KT_CHECK(known.size() == 1);
    const std::uint64_t bias = address_of(reinterpret_cast<const void *>(&detoured_call)) - known[0]->vaddr;

    std::vector<DetouredFunction> all;
    std::vector<std::pair<VirtAddr, VirtAddr>> data;
    for (const symbols::Symbol &each : (*module)->symbols()) {
        const VirtAddr start{each.vaddr + bias}, end = start + static_cast<std::int64_t>(each.size);
        if (!in_section(start) || each.size == 0) continue;
        if (each.kind == symbols::Symbol::Kind::object) data.emplace_back(start, end);
        if (each.kind == symbols::Symbol::Kind::function && (all.empty() || all.back().start != start))
            all.push_back({std::string(each.name), start, end, {}, {}, {}});
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        DetouredFunction &each = all[i];
        each.padding_end = i + 1 < all.size() ? all[i + 1].start : VirtAddr{address_of(__stop_detoured)};
        const std::span code(bytes_at(each.start), static_cast<std::size_t>(each.end - each.start));
        each.targets = X86_64Detour::targets(code, each.start);
        for (std::size_t offset = 0; offset < code.size(); ++offset) {
            const VirtAddr at = each.start + static_cast<std::int64_t>(offset);
            if (!holds(data, at) && X86_64::probeable(code, each.start, offset).ok) each.instructions.push_back(at);
        }
    }
    return all;
}

std::vector<VirtAddr> executions(std::span<const State> states) {
    std::vector<VirtAddr> all;
    for (const State &each : states) {
        const VirtAddr pc{each[state_pc]};
        const bool again =
            !all.empty() && pc == all.back() && X86_64::plan(std::span(bytes_at(pc), X86_64::longest), pc).repeats;
        if (!again) all.push_back(pc);
    }
    return all;
}

Planted::Planted() : stubs_(map_stubs()), landings_(free_within_reach(), X86_64Detour::jump_size, 1000) {
    use_handlers();
    make_text_writable();
    shared.states.reserve(most_states);
}

Outcome Planted::run(bool stepped) {
    alignas(16) static std::byte stack[stack_size];
    static std::uint64_t memory[detoured_words];
    constexpr std::uint64_t arguments[][2] = {{0, 0},
                                              {1, 2},
                                              {2, 1},
                                              {7, 0x123456789a},
                                              {~std::uint64_t{0}, 3},
                                              {255, 7},
                                              {44, 4},
                                              {std::uint64_t{1} << 31, 9}};
    Outcome outcome;
    shared.states.clear();
    shared.problems.clear();
    for (const Detoured &each : detoured())
        for (const auto &[a, b] : std::span(arguments).first(std::min(std::size(arguments), each.most_calls))) {
            for (std::size_t i = 0; i < detoured_words; ++i) memory[i] = (a + i) * 0x9e3779b97f4a7c15;
            outcome.results.push_back(
                detoured_call(each.call, a, b, memory, stack + stack_size, stepped ? trap_flag : 0));
            outcome.results.insert(outcome.results.end(), std::begin(memory), std::end(memory));
        }
    outcome.states = shared.states;
    return outcome;
}

tl::expected<Window, arch::NoJump> Planted::window(const DetouredFunction &function, VirtAddr site,
                                                   std::span<const VirtAddr> sites) const {
    arch::DetourSite asked;
    asked.at = site;
    const auto rest = static_cast<std::size_t>(VirtAddr{address_of(__stop_detoured)} - site);
    asked.code = std::span(bytes_at(site), std::min(rest, X86_64Detour::longest_window));
    asked.function_end = function.end;
    asked.padding_end = function.padding_end;
    asked.targets = function.targets;
    asked.sites = sites;
    return X86_64Detour::window(asked);
}

bool Planted::make(VirtAddr site, const Window &window, const arch::TrapBytes &traps) {
    const auto landing = landings_.take(X86_64Detour::landing_rule(window, site, traps));
    if (!landing) return false;
    KT_CHECK(shared.detours.size() * stub_size < all_stubs);
    const VirtAddr stub = stubs_ + static_cast<std::int64_t>(shared.detours.size() * stub_size);
    const std::span code(bytes_at(site), window.length);
    const auto copies = X86_64Detour::copy(window, code, site, stub + copies_at);
    const auto there = X86_64Detour::jump(site, *landing);
    const auto on = X86_64Detour::jump(*landing, stub + head_at);
    if (!copies || !there || !on) return false;
    KT_CHECK(copies_at + copies->bytes.size() <= stub_size);
    map_landings();
    write(*landing, *on);
    std::vector<std::byte> bytes(head_at);
    for (std::byte each : counting_code()) bytes.push_back(each);
    bytes.insert(bytes.end(), copies->bytes.begin(), copies->bytes.end());
    write(stub, bytes);
    Detour detour{site, stub, *landing, window, *copies, {}, *there, false};
    detour.original.assign(code.begin(), code.begin() + X86_64Detour::jump_size);
    for (const arch::Boundary &each : window.inner)
        KT_CHECK(each.stays ? detour.jump[each.offset] == detour.original[each.offset]
                            : traps.anywhere[std::to_integer<std::size_t>(detour.jump[each.offset])]);
    for (const arch::Copies::Entry &each : copies->entries) KT_CHECK(is_shown(detour, each));
    shared.stubs[stub] = &(shared.detours[site] = std::move(detour));
    return true;
}

void Planted::plant(VirtAddr site) { test::plant(shared.detours.at(site)); }

void Planted::plant_when_at(VirtAddr site, VirtAddr boundary) {
    shared.waiting = &shared.detours.at(site);
    shared.boundary = boundary;
    shared.at_boundary = *bytes_at(boundary);
    write(boundary, X86_64::trap_bytes());
}

void Planted::clear() {
    if (shared.waiting != nullptr) *bytes_at(shared.boundary) = shared.at_boundary;
    shared.waiting = nullptr;
    for (auto &[site, detour] : shared.detours) {
        write(site, detour.original);
        landings_.give_back(detour.landing);
    }
    shared.stubs.clear();
    shared.detours.clear();
    shared.traps = 0;
}

std::uint64_t Planted::count(VirtAddr site) const { return word_at(shared.detours.at(site).stub); }
std::uint64_t Planted::traps() const { return shared.traps; }
std::vector<std::string> Planted::problems() const { return shared.problems; }

void Planted::map_landings() {
    for (const VirtAddr page : landings_.pages())
        if (mapped_.insert(page).second) map(page, jump::page_size);
}

} // namespace ktrace::test

#endif
