// Agreement: an instruction that runs where it was, one that is emulated, one that runs from a slot, one that is
// stepped there and one that a jump has displaced leave the same registers and memory, or fault in the same way.
#if defined(__x86_64__)

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <set>
#include <sys/ptrace.h>

#include "tests/isa/x86_64/corpus.h"
#include "x86_64/detour/detour.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

using arch::Copies;
using arch::Emulated;
using arch::Method;
using arch::NoJump;
using arch::Placement;
using arch::SlotPosition;
using arch::Stepped;
using arch::X86_64;
using arch::X86_64Detour;

constexpr VirtAddr site{Stage::site};
constexpr std::byte nop{0x90};

struct Count {
    std::size_t cases = 0, emulated = 0, boosted = 0, stepped = 0, scratch = 0, system_calls = 0, refused = 0,
                skipped = 0;
    std::size_t displaced = 0, undisplaced = 0;
    std::size_t faults = 0, failures = 0;
};

/// The state that two runs must have in common. A run that reaches the int3 behind its instruction has no signal of its
/// own.
struct Result {
    int signal = 0, code = 0;
    std::uint64_t fault_address = 0;
    arch::X86_64Registers regs;
    std::vector<std::byte> extended, memory;
};

bool is_address_of_instruction(int signal) { return signal == SIGILL || signal == SIGFPE; }

Result result_of(const Ending &ending) {
    // The resume flag belongs to how a stop came about; the CPUID flag cannot be set again by ptrace between two runs;
    // the nested-task flag, which means nothing in 64-bit mode, is lost in a virtual machine without hardware's help
    // (PVM) whenever an interrupt comes.
    constexpr std::uint64_t nested_task_flag = 1 << 14, resume_flag = 1 << 16, cpuid_flag = 1 << 21;
    Result result{ending.signal, ending.code, ending.fault_address, ending.regs, comparable(ending.extended),
                  ending.memory};
    if (ending.signal == SIGTRAP) {
        result.signal = result.code = 0;
        result.fault_address = 0;
    }
    result.regs.flags &= ~(nested_task_flag | resume_flag | cpuid_flag);
    result.regs.orig_ax = 0;
    return result;
}

/// int3 leaves the pc behind itself.
void leave_end_trap(Ending &ending) {
    if (ending.signal == SIGTRAP) ending.regs.ip = X86_64::trap_address(VirtAddr{ending.regs.ip}).value;
}

std::optional<std::size_t> first_difference(const std::vector<std::byte> &a, const std::vector<std::byte> &b) {
    if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0) return std::nullopt;
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

std::string differences(const Result &wanted, const Result &got) {
    std::string text;
    auto say = [&](const std::string &what, std::uint64_t a, std::uint64_t b) {
        char line[128];
        std::snprintf(line, sizeof line, " %s %#llx not %#llx;", what.c_str(), static_cast<unsigned long long>(b),
                      static_cast<unsigned long long>(a));
        if (a != b) text += line;
    };
    say("signal", static_cast<unsigned>(wanted.signal), static_cast<unsigned>(got.signal));
    say("si_code", static_cast<unsigned>(wanted.code), static_cast<unsigned>(got.code));
    say("si_addr", wanted.fault_address, got.fault_address);
    for (const arch::RegisterInfo &info : X86_64::registers()) {
        if (info.file != arch::RegisterInfo::File::general) continue;
        std::uint64_t a, b;
        std::memcpy(&a, reinterpret_cast<const std::byte *>(&wanted.regs) + info.offset, sizeof a);
        std::memcpy(&b, reinterpret_cast<const std::byte *>(&got.regs) + info.offset, sizeof b);
        say(std::string(info.name), a, b);
    }
    if (auto at = first_difference(wanted.extended, got.extended))
        text += " extended state at " + std::to_string(*at) + ";";
    if (auto at = first_difference(wanted.memory, got.memory)) text += " memory at " + std::to_string(*at) + ";";
    return text;
}

class X86Agreement : public ::testing::Test {
  protected:
    void compare_all(const char *source, const std::vector<Case> &cases, std::uint64_t seed) {
        count_ = {};
        Random random(seed);
        for (const Case &each : cases) compare(each, random);
        std::set<std::string> mnemonics;
        for (const Case &each : cases) mnemonics.insert(each.text.substr(0, each.text.find(' ')));
        std::printf(
            "[ agreement] %s: %zu cases of %zu mnemonics, run in %zu ways: %zu emulated, %zu boosted, %zu stepped "
            "(%zu by a scratch register), %zu displaced, %zu not; %zu ended in a fault. Beside them %zu system calls, "
            "%zu refused, %zu not "
            "repeatable\n",
            source, count_.cases, mnemonics.size(),
            count_.cases + count_.emulated + count_.boosted + count_.stepped + count_.displaced, count_.emulated,
            count_.boosted, count_.stepped, count_.scratch, count_.displaced, count_.undisplaced, count_.faults,
            count_.system_calls, count_.refused, count_.skipped);
        EXPECT_EQ(count_.failures, 0u);
    }

    void compare(const Case &each, Random &random) {
        const Scene scene = make_scene(each, stage_, random);
        const arch::X86_64Plan plan = X86_64::plan(scene.code, site);
        if (plan.method == Method::refuse) {
            ++count_.refused;
            EXPECT_NE(plan.why, nullptr) << each.text;
            return;
        }
        if (!scene.runnable || plan.method == Method::syscall) {
            ++(scene.runnable ? count_.system_calls : count_.skipped);
            return;
        }
        ASSERT_EQ(plan.length, scene.code.size()) << each.text;
        ++count_.cases;
        const Result native = run_native(scene);
        if (native.signal != 0) ++count_.faults;
        if (plan.method == Method::emulate) check_emulated(each, scene, plan, native);
        check_displaced(each, scene, plan);
        if (!arch::takes_slot(plan)) return;
        for (std::uint64_t slot : {Stage::near_slot, Stage::far_slot}) {
            if (slot == Stage::far_slot && plan.insn.displacement_offset == 0) continue;
            check_placed(each, scene, plan, VirtAddr{slot}, native);
        }
    }

    void check_placed(const Case &each, const Scene &scene, const arch::X86_64Plan &plan, VirtAddr slot,
                      Result native) {
        const Placement placed = X86_64::place(plan, site, slot);
        ASSERT_NE(placed.method, Method::refuse) << each.text;
        if (placed.method == Method::emulate) return;
        if (placed.method == Method::boost) {
            ++count_.boosted;
            Result boosted = run_boosted(scene, plan, placed, slot);
            forget_unpushed(placed.pushed, native, boosted);
            report(each, "boosted", native, boosted);
        }
        ++count_.stepped;
        if (placed.scratch >= 0) ++count_.scratch;
        Result stepped = run_stepped(scene, plan, placed, slot);
        forget_unpushed(placed.pushed, native, stepped);
        report(each, placed.scratch >= 0 ? "stepped with a scratch register" : "stepped", native, stepped);
    }

    /// The bytes that a call which faults at its target leaves below the stack pointer differ between makers.
    static void forget_unpushed(std::uint8_t pushed, Result &native, Result &got) {
        const std::uint64_t at = native.regs.sp - pushed;
        if (pushed == 0 || native.signal == 0 || native.regs.sp != got.regs.sp) return;
        auto forget = [&](std::uint64_t start, std::size_t size, std::size_t offset) {
            if (at < start || at + pushed > start + size) return;
            for (Result *each : {&native, &got})
                std::fill_n(each->memory.data() + offset + (at - start), pushed, std::byte{});
        };
        forget(Stage::data_at, Stage::data_size, 0);
        forget(Stage::stack_at, Stage::stack_size, Stage::data_size);
    }

    /// With nops behind it, before it where it is a call, so that a jump would displace it.
    void check_displaced(const Case &each, const Scene &scene, const arch::X86_64Plan &plan) {
        const bool is_call = plan.flow == arch::Flow::call;
        const std::size_t lead = is_call && scene.code.size() < 5 ? 5 - scene.code.size() : 0;
        std::vector<std::byte> code(lead, nop);
        code.insert(code.end(), scene.code.begin(), scene.code.end());
        if (!is_call) code.insert(code.end(), 4, nop);
        const VirtAddr end = site + static_cast<std::int64_t>(code.size());
        const std::vector<VirtAddr> targets = X86_64Detour::targets(code, site);
        const auto window = X86_64Detour::window({site, code, end, end, targets, {}, false});
        if (!window) {
            ++count_.undisplaced;
            const std::set<NoJump> possible = {NoJump::undefined, NoJump::trap_flag, NoJump::unmovable};
            EXPECT_TRUE(possible.contains(window.error())) << each.text << ": " << static_cast<int>(window.error());
            return;
        }
        const VirtAddr to{Stage::near_slot};
        const auto copies = X86_64Detour::copy(*window, code, site, to);
        ASSERT_TRUE(copies) << each.text;
        ++count_.displaced;
        Result native = run_native(scene, code);
        Result displaced = run_displaced(scene, code, *copies, to);
        forget_unpushed(is_call ? 8 : 0, native, displaced);
        report(each, "displaced", native, displaced);
    }

    Result run_displaced(const Scene &scene, std::span<const std::byte> code, const Copies &copies, VirtAddr to) {
        set_up(scene, code);
        stage_.set_slot(to.value, copies.bytes);
        arch::X86_64Registers regs = scene.regs;
        regs.ip = to.value;
        stage_.set_state(regs, scene.extended);
        Ending ending = stage_.run(PTRACE_CONT);
        leave_end_trap(ending);
        for (const Copies::Shown &shown : copies.shown) {
            if (ending.regs.ip != to.value + shown.at) continue;
            ending.regs.ip = shown.pc.value;
            ending.regs.sp += shown.pushed;
            if (is_address_of_instruction(ending.signal)) ending.fault_address = ending.regs.ip;
            break;
        }
        return result_of(ending);
    }

    void set_up(const Scene &scene) { set_up(scene, scene.code); }
    void set_up(const Scene &scene, std::span<const std::byte> code) {
        stage_.set_code(code);
        stage_.set_memory(scene.memory);
    }

    Result run_native(const Scene &scene) { return run_native(scene, scene.code); }
    Result run_native(const Scene &scene, std::span<const std::byte> code) {
        set_up(scene, code);
        stage_.set_state(scene.regs, scene.extended);
        Ending ending = stage_.run(PTRACE_CONT);
        leave_end_trap(ending);
        return result_of(ending);
    }

    Result run_boosted(const Scene &scene, const arch::X86_64Plan &plan, const Placement &placed, VirtAddr slot) {
        set_up(scene);
        stage_.set_slot(slot.value, {placed.bytes, placed.size});
        arch::X86_64Registers regs = scene.regs;
        X86_64::begin_step(placed, slot, regs);
        stage_.set_state(regs, scene.extended);
        Ending ending = stage_.run(PTRACE_CONT);
        leave_end_trap(ending);
        tell_original(ending, plan, placed, slot);
        return result_of(ending);
    }

    /// A fault in the slot is delivered at the site.
    void tell_original(Ending &ending, const arch::X86_64Plan &plan, const Placement &placed, VirtAddr slot) {
        switch (X86_64::slot_position(placed, slot, VirtAddr{ending.regs.ip})) {
        case SlotPosition::at_start: ending.regs.ip = site.value; break;
        case SlotPosition::after: ending.regs.ip = (site + plan.length).value; break;
        case SlotPosition::inside: X86_64::abort_step(placed, site, slot, 0, ending.regs); break;
        case SlotPosition::elsewhere: return;
        }
        if (is_address_of_instruction(ending.signal)) ending.fault_address = ending.regs.ip;
    }

    Result run_stepped(const Scene &scene, const arch::X86_64Plan &plan, const Placement &placed, VirtAddr slot) {
        set_up(scene);
        stage_.set_slot(slot.value, {placed.bytes, placed.size});
        arch::X86_64Registers regs = scene.regs;
        const std::uint64_t old = X86_64::begin_step(placed, slot, regs);
        stage_.set_state(regs, scene.extended);
        Ending ending;
        do {
            ending = stage_.run(PTRACE_SINGLESTEP);
            if (ending.signal != SIGTRAP) {
                X86_64::abort_step(placed, site, slot, old, ending.regs);
                if (is_address_of_instruction(ending.signal)) ending.fault_address = ending.regs.ip;
                return result_of(ending);
            }
        } while (X86_64::finish_step(plan, placed, site, slot, old, ending.regs, stage_) == Stepped::again);
        ending.memory = stage_.memory();
        // Control may have left for what cannot be run: natively that shows as a fault at the target.
        if (ending.regs.ip != (site + plan.length).value) {
            stage_.set_registers(ending.regs);
            ending = stage_.run(PTRACE_CONT);
            leave_end_trap(ending);
        }
        return result_of(ending);
    }

    void check_emulated(const Case &each, const Scene &scene, const arch::X86_64Plan &plan, const Result &native) {
        ++count_.emulated;
        set_up(scene);
        arch::X86_64Registers regs = scene.regs;
        const Emulated emulated = X86_64::emulate(plan, site, regs, stage_);
        // Where a transfer to a non-canonical address faults differs between makers; Emulate answers as Intel's do.
        if (emulated.fault == Emulated::Fault::protection && !__builtin_cpu_is("intel")) return;
        if (emulated.outcome == Emulated::Outcome::fault) {
            Result got{SIGSEGV, native.code, emulated.fault_address.value, regs, native.extended, stage_.memory()};
            if (emulated.fault == Emulated::Fault::stack) got.signal = SIGBUS;
            if (emulated.fault != Emulated::Fault::page) got.code = SI_KERNEL;
            got.regs.orig_ax = 0;
            report(each, "emulated", native, got);
            EXPECT_EQ(regs, scene.regs) << each.text << ": a fault must change nothing";
            return;
        }
        stage_.set_state(regs, scene.extended);
        Ending ending = stage_.run(PTRACE_CONT);
        leave_end_trap(ending);
        report(each, "emulated", native, result_of(ending));
    }

    void report(const Case &each, const char *how, const Result &native, const Result &got) {
        constexpr std::size_t most_shown = 40;
        const std::string text = differences(native, got);
        if (text.empty() || ++count_.failures > most_shown) return;
        ADD_FAILURE() << each.text << ", " << how << ":" << text;
    }

    Stage stage_;
    Count count_;
};

TEST_F(X86Agreement, EncodedInstructions) {
    const std::vector<Case> cases = encoded_cases(1, 10);
    ASSERT_GT(cases.size(), 8000u);
    compare_all("encoder", cases, 2);
}

TEST_F(X86Agreement, Transfers) { compare_all("transfers", transfer_cases(4, 6000), 5); }

TEST_F(X86Agreement, RandomBytes) { compare_all("random bytes", random_cases(6, 20000), 7); }

class X86RealCode : public X86Agreement, public ::testing::WithParamInterface<const char *> {};

TEST_P(X86RealCode, RunsTheSameEverywhere) {
    const std::string path = library_path(GetParam());
    if (path.empty()) GTEST_SKIP() << GetParam() << " is not installed";
    const std::vector<Case> cases = harvested_cases(path, 3, 200);
    ASSERT_GT(cases.size(), 1000u);
    compare_all(GetParam(), cases, 3);
}

INSTANTIATE_TEST_SUITE_P(Agreement, X86RealCode, ::testing::Values("libc.so.6", "libstdc++.so.6", "libcrypto.so.3"),
                         [](const auto &parameter) {
                             const std::string name = parameter.param;
                             return name.starts_with("libstdc") ? "libstdcxx" : name.substr(0, name.find('.'));
                         });

} // namespace

} // namespace ktrace::test

#endif
