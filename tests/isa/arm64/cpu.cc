#include "cpu.h"

#if defined(__aarch64__)

#include <algorithm>
#include <csignal>
#include <cstring>

#include <asm/sigcontext.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/check.h"
#include "words.h"

namespace ktrace::arch::test {

namespace {

constexpr std::uint32_t breakpoint = 0xd4200000; // brk #0
constexpr std::size_t handler_stack_size = 1 << 18;

enum class Phase { outside, entering, inside } phase = Phase::outside;
Arm64Registers *wanted;
Arm64FpRegisters *wanted_floating;
Arm64Registers ours;
Arm64FpRegisters our_floating;
alignas(16) std::byte handler_stack[handler_stack_size];

void load(const mcontext_t &from, Arm64Registers &regs) {
    std::copy(std::begin(from.regs), std::end(from.regs), std::begin(regs.x));
    regs.sp = from.sp;
    regs.pc = from.pc;
    regs.pstate = from.pstate;
}

void store(const Arm64Registers &regs, mcontext_t &into) {
    std::copy(std::begin(regs.x), std::end(regs.x), std::begin(into.regs));
    into.sp = regs.sp;
    into.pc = regs.pc;
    into.pstate = regs.pstate;
}

/// The kernel puts the SIMD registers first among the records behind the general ones.
fpsimd_context &floating_of(mcontext_t &context) {
    auto *record = reinterpret_cast<fpsimd_context *>(context.__reserved);
    KT_CHECK(record->head.magic == FPSIMD_MAGIC);
    return *record;
}

void load(fpsimd_context &from, Arm64FpRegisters &floating) {
    std::memcpy(floating.v, from.vregs, sizeof floating.v);
    floating.fpsr = from.fpsr;
    floating.fpcr = from.fpcr;
}

void store(const Arm64FpRegisters &floating, fpsimd_context &into) {
    std::memcpy(into.vregs, floating.v, sizeof floating.v);
    into.fpsr = floating.fpsr;
    into.fpcr = floating.fpcr;
}

void on_trap(int, siginfo_t *, void *raw) {
    mcontext_t &context = static_cast<ucontext_t *>(raw)->uc_mcontext;
    KT_CHECK(phase != Phase::outside);
    if (phase == Phase::entering) {
        load(context, ours);
        load(floating_of(context), our_floating);
        store(*wanted, context);
        store(*wanted_floating, floating_of(context));
        phase = Phase::inside;
        return;
    }
    load(context, *wanted);
    load(floating_of(context), *wanted_floating);
    ours.pc += a64_size; // behind the brk that went in
    store(ours, context);
    store(our_floating, floating_of(context));
    phase = Phase::outside;
}

} // namespace

Cpu::Cpu() {
    void *map = ::mmap(nullptr, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    KT_CHECK(map != MAP_FAILED);
    region_ = static_cast<std::byte *>(map);
    stack_t stack{};
    stack.ss_sp = handler_stack;
    stack.ss_size = handler_stack_size;
    KT_CHECK(::sigaltstack(&stack, nullptr) == 0);
    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    KT_CHECK(::sigaction(SIGTRAP, &action, nullptr) == 0);
    clear();
}

Cpu::~Cpu() { ::munmap(region_, size); }

VirtAddr Cpu::at(std::size_t offset) const { return VirtAddr{reinterpret_cast<std::uint64_t>(region_ + offset)}; }

void Cpu::clear() {
    auto bytes = a64_bytes(breakpoint);
    for (std::size_t offset = 0; offset < size; offset += a64_size)
        std::copy(bytes.begin(), bytes.end(), region_ + offset);
    __builtin___clear_cache(reinterpret_cast<char *>(region_), reinterpret_cast<char *>(region_ + size));
}

void Cpu::put(VirtAddr address, std::span<const std::byte> bytes) {
    std::byte *into = region_ + (address - at(0));
    std::copy(bytes.begin(), bytes.end(), into);
    __builtin___clear_cache(reinterpret_cast<char *>(into), reinterpret_cast<char *>(into + bytes.size()));
}

void Cpu::run(Arm64Registers &regs, Arm64FpRegisters &floating) {
    wanted = &regs;
    wanted_floating = &floating;
    phase = Phase::entering;
    asm volatile("brk #0" ::: "memory");
    KT_CHECK(phase == Phase::outside);
}

} // namespace ktrace::arch::test

#endif
