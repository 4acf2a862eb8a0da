// Planted: detours in the functions of detoured.h, in the own process, by the pure functions of jump/ and arch/ alone.
// Each counts how often it is passed. A thread that comes to an inner boundary goes on in the copies, by a handler for
// SIGTRAP and SIGILL.
//
// Invariants: for a process of one thread that ends soon (a child): its text becomes writable, its handlers stay.
#pragma once

#if defined(__x86_64__)

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "jump/landings.h"
#include "x86_64/detour/detour.h"

namespace ktrace::test {

/// A function of the section, in this process.
struct DetouredFunction {
    std::string name;
    VirtAddr start, end, padding_end;
    std::vector<VirtAddr> targets;
    std::vector<VirtAddr> instructions; // where a probe may be put
};

/// All functions of the section, in order of addresses, by the symbols of this program.
std::vector<DetouredFunction> detoured_functions();

/// The program's own state, in the order of gregset_t: the last two are pc and flags.
using State = std::array<std::uint64_t, 18>;
inline constexpr std::size_t state_sp = 15, state_pc = 16, state_flags = 17;

/// A run of all functions with all arguments.
struct Outcome {
    std::vector<std::uint64_t> results;
    std::vector<State> states; // before each instruction of the section, where it was stepped; equal neighbours once
};

/// The instructions that were executed, by the states of a run: repeats of a string instruction are no executions. To
/// be asked while nothing is planted.
std::vector<VirtAddr> executions(std::span<const State> states);

class Planted {
  public:
    Planted();

    /// Runs all functions with all arguments, on the same stack each time.
    Outcome run(bool stepped = false);

    /// The window of a site among others; the reason why there is none.
    tl::expected<arch::Window, arch::NoJump> window(const DetouredFunction &function, VirtAddr site,
                                                    std::span<const VirtAddr> sites = {}) const;
    /// Makes a detour, without planting it. False: there is no room, or it reaches not far enough.
    bool make(VirtAddr site, const arch::Window &window, const arch::TrapBytes &traps);
    void plant(VirtAddr site);
    /// Plants it once a thread comes to this address, an inner boundary of it.
    void plant_when_at(VirtAddr site, VirtAddr boundary);
    /// Lifts and forgets all.
    void clear();

    /// How often a detour was passed.
    std::uint64_t count(VirtAddr site) const;
    /// How often a thread was at an inner boundary of a planted one, since `clear`.
    std::uint64_t traps() const;
    /// Faults of the last run beyond its results: states that cannot be shown.
    std::vector<std::string> problems() const;

  private:
    void map_landings();

    VirtAddr stubs_;
    jump::Landings landings_;
    std::set<VirtAddr> mapped_; // pages of landings
};

} // namespace ktrace::test

#endif
