// Detours at every instruction of every function of detoured.h: nothing changes but the counts, which are those of
// stepping.
#if defined(__x86_64__)

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <string_view>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "jump/words.h"
#include "tests/isa/x86_64/planted.h"
#include "tests/isa/x86_64/stage.h"

namespace ktrace::test {

namespace {

using arch::TrapBytes;
using arch::Window;
using arch::X86_64Detour;

/// A site that has a window, as if it were the only one.
struct Candidate {
    const DetouredFunction *function = nullptr;
    VirtAddr at;
    Window window;
    std::string name() const { return function->name + "+" + std::to_string(at - function->start); }
};

/// Complaints of a run: the first ones, and how many there are.
class Complaints {
  public:
    void add(const std::string &what) {
        if (++count_ <= 30) text_ += what + "\n";
    }
    std::string text() const { return count_ == 0 ? "" : text_ + std::to_string(count_) + " complaints\n"; }

  private:
    std::string text_;
    std::size_t count_ = 0;
};

TrapBytes breakpoints() { return {X86_64Detour::trap_byte(), X86_64Detour::trap_byte()}; }
TrapBytes illegal_bytes() { return {X86_64Detour::illegal_bytes(), X86_64Detour::illegal_bytes()}; }
TrapBytes all_bytes() {
    const arch::ByteSet all = X86_64Detour::trap_byte() | X86_64Detour::illegal_bytes();
    return {all, X86_64Detour::trap_byte()};
}

/// Runs in a child, whose text is its own. Gives what that returned, and its end where it was killed.
std::string in_child(const std::function<std::string()> &body) {
    int ends[2];
    KT_CHECK(::pipe(ends) == 0);
    const pid_t pid = ::fork();
    KT_CHECK(pid >= 0);
    if (pid == 0) {
        ::alarm(300);
        const std::string text = body();
        std::size_t at = 0;
        for (ssize_t size = 1; at < text.size() && size > 0; at += static_cast<std::size_t>(std::max<ssize_t>(size, 0)))
            size = ::write(ends[1], text.data() + at, text.size() - at);
        ::_exit(at == text.size() ? 0 : 2);
    }
    ::close(ends[1]);
    std::string text;
    static char buffer[1 << 16];
    for (ssize_t size = 0; (size = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<std::size_t>(size));
    ::close(ends[0]);
    int status = 0;
    KT_CHECK(::waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status)) text += "killed by signal " + std::to_string(WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) text += "exit " + std::to_string(WEXITSTATUS(status));
    return text;
}

template <class T> std::string bytes_of(std::span<const T> values) {
    return {reinterpret_cast<const char *>(values.data()), values.size_bytes()};
}

template <class T> std::vector<T> values_of(std::string_view bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}

/// The states of a stepped run with nothing planted. All children have the same addresses.
const std::vector<State> &stepped_states() {
    static const auto states = values_of<State>(in_child([] {
        Planted planted;
        planted.run(); // library functions are bound
        const Outcome outcome = planted.run(/*stepped=*/true);
        KT_CHECK(outcome.results == planted.run().results);
        return bytes_of<State>(outcome.states);
    }));
    return states;
}

/// The functions, their results with nothing planted, and how often each instruction is executed. In a child.
class Rig {
  public:
    explicit Rig(Complaints &complaints) : complaints_(complaints), functions_(detoured_functions()) {
        planted.run(); // library functions are bound
        expected_ = planted.run();
        executions_ = executions(stepped_states());
        for (const VirtAddr each : executions_) ++counts_[each];
        for (const DetouredFunction &function : functions_)
            for (const VirtAddr at : function.instructions)
                if (const auto window = planted.window(function, at)) candidates_.push_back({&function, at, *window});
    }

    std::span<const Candidate> candidates() const { return candidates_; }
    std::span<const DetouredFunction> functions() const { return functions_; }
    std::uint64_t executed(VirtAddr at) const {
        const auto found = counts_.find(at);
        return found != counts_.end() ? found->second : 0;
    }
    const DetouredFunction *function_at(VirtAddr at) const {
        const auto found = std::find_if(functions_.begin(), functions_.end(),
                                        [at](const auto &each) { return at >= each.start && at < each.end; });
        return found != functions_.end() ? &*found : nullptr;
    }
    /// How often from the first time of another instruction on.
    std::uint64_t executed_from(VirtAddr other, VirtAddr at) const {
        const auto from = std::find(executions_.begin(), executions_.end(), other);
        return static_cast<std::uint64_t>(std::count(from, executions_.end(), at));
    }

    void complain(const std::string &where, const std::string &what) { complaints_.add(where + ": " + what); }
    bool make(const Candidate &site, const TrapBytes &traps) {
        if (planted.make(site.at, site.window, traps)) return true;
        complain(site.name(), "no place for its detour");
        return false;
    }
    void compare(const std::string &where, const Outcome &outcome) {
        if (outcome.results != expected_.results) complain(where, "results differ");
        for (const std::string &each : planted.problems()) complain(where, each);
    }
    void compare_count(const std::string &where, VirtAddr at, std::uint64_t expected) {
        const std::uint64_t count = planted.count(at);
        if (count != expected)
            complain(where, "passed " + std::to_string(expected) + " times, counted " + std::to_string(count));
    }

    Planted planted;

  private:
    Complaints &complaints_;
    std::vector<DetouredFunction> functions_;
    std::vector<Candidate> candidates_;
    Outcome expected_;
    std::vector<VirtAddr> executions_;
    std::map<VirtAddr, std::uint64_t> counts_;
};

std::string complaints(const std::function<void(Rig &)> &body) {
    stepped_states();
    return in_child([&body] {
        Complaints all;
        Rig rig(all);
        body(rig);
        return all.text();
    });
}

TEST(PlantedDetours, HaveAWindowAtMostInstructions) {
    EXPECT_EQ(complaints([](Rig &rig) {
                  std::map<arch::NoJump, std::uint64_t> refused;
                  std::uint64_t sites = 0, reached = 0;
                  for (const DetouredFunction &function : rig.functions())
                      for (const VirtAddr at : function.instructions) {
                          const auto window = rig.planted.window(function, at);
                          if (!window) ++refused[window.error()];
                          ++sites;
                          if (rig.executed(at) != 0) ++reached;
                      }
                  std::string text = std::to_string(sites) + " sites, " + std::to_string(reached) + " reached";
                  for (const auto &[why, count] : refused)
                      text += "; " + std::to_string(count) + ": " + std::string(jump::words(why));
                  if (sites < 800 || reached * 10 < sites * 9 || rig.candidates().size() * 10 < sites * 8 ||
                      refused.size() < 9)
                      rig.complain("too few", text);
              }),
              "");
}

void plant_singly(Rig &rig, const TrapBytes &traps) {
    for (const Candidate &site : rig.candidates()) {
        if (rig.make(site, traps)) {
            rig.planted.plant(site.at);
            rig.compare(site.name(), rig.planted.run());
            rig.compare_count(site.name(), site.at, rig.executed(site.at));
        }
        rig.planted.clear();
    }
}

TEST(PlantedDetours, OneAtATimeWithBreakpoints) {
    EXPECT_EQ(complaints([](Rig &rig) { plant_singly(rig, breakpoints()); }), "");
}

TEST(PlantedDetours, OneAtATimeWithIllegalBytes) {
    EXPECT_EQ(complaints([](Rig &rig) { plant_singly(rig, illegal_bytes()); }), "");
}

void plant_under_a_thread(Rig &rig, const Candidate &site, std::uint8_t offset) {
    const VirtAddr boundary = site.at + offset;
    const std::string where = site.name() + ", a thread at +" + std::to_string(offset);
    const std::uint64_t expected = rig.executed_from(boundary, site.at);
    if (rig.make(site, all_bytes())) {
        rig.planted.plant_when_at(site.at, boundary);
        rig.compare(where, rig.planted.run());
        if (rig.planted.traps() == 0) rig.complain(where, "it never came to the trap");
        rig.compare_count(where, site.at, expected);
    }
    rig.planted.clear();
}

TEST(PlantedDetours, UnderAThreadAtAnInnerBoundary) {
    EXPECT_EQ(complaints([](Rig &rig) {
                  for (const Candidate &site : rig.candidates())
                      for (const std::uint8_t start : site.window.starts)
                          if (start != 0 && start < X86_64Detour::jump_size && rig.executed(site.at + start) != 0)
                              plant_under_a_thread(rig, site, start);
              }),
              "");
}

/// Sites whose windows do not overlap: all that have room, but for `skipped` of four, by chance.
std::vector<const Candidate *> apart(const Rig &rig, Random &random, std::uint64_t skipped) {
    std::vector<const Candidate *> chosen;
    VirtAddr end;
    for (const Candidate &each : rig.candidates()) {
        if (each.at < end || random.below(4) < skipped) continue;
        chosen.push_back(&each);
        end = each.at + std::max<std::int64_t>(each.window.length, X86_64Detour::jump_size);
    }
    return chosen;
}

/// Plants them all; false: one has no place.
bool plant_all(Rig &rig, std::span<const Candidate *const> chosen, const TrapBytes &traps) {
    std::vector<VirtAddr> sites;
    for (const Candidate *each : chosen) sites.push_back(each->at);
    for (const Candidate *each : chosen) {
        const auto window = rig.planted.window(*each->function, each->at, sites);
        if (!window || window->length != each->window.length) rig.complain(each->name(), "others change its window");
        if (!rig.make(*each, traps)) return false;
    }
    for (const VirtAddr each : sites) rig.planted.plant(each);
    return true;
}

/// Where exceptions come by, which leave other values each time but in what functions preserve.
bool is_passed_by_exceptions(const DetouredFunction &function) {
    const auto has = [&function](const char *part) { return function.name.find(part) != std::string::npos; };
    return has("fails") || has("between") || has("exceptions");
}

/// Heaps, also AddressSanitizer's: exceptions lie there.
bool is_heap(std::uint64_t address) {
    const auto end = reinterpret_cast<std::uint64_t>(::sbrk(0));
    constexpr std::uint64_t most = 256 << 20, sanitizers = 0x600000000000, sanitizers_end = 0x650000000000;
    return (address < end && end - address < most) || (address >= sanitizers && address < sanitizers_end);
}

std::string difference(const DetouredFunction *function, const State &expected, const State &state) {
    const bool all = function == nullptr || !is_passed_by_exceptions(*function);
    for (std::size_t i = 0; i < state.size(); ++i) {
        const bool preserved =
            i == state_pc || i == state_sp || (i >= REG_R12 && i <= REG_R15) || i == REG_RBX || i == REG_RBP;
        if (expected[i] == state[i] || (!all && !preserved)) continue;
        if (i != state_pc && i != state_sp && is_heap(expected[i]) && is_heap(state[i])) continue;
        return "register " + std::to_string(i) + ": " + std::to_string(expected[i]) + ", " + std::to_string(state[i]);
    }
    return "";
}

/// The first state that differs.
std::string difference(const Rig &rig, std::span<const State> states) {
    const std::vector<State> &expected = stepped_states();
    for (std::size_t i = 0; i < std::min(states.size(), expected.size()); ++i) {
        const DetouredFunction *const function = rig.function_at(VirtAddr{expected[i][state_pc]});
        const std::string text = difference(function, expected[i], states[i]);
        if (text.empty()) continue;
        const std::string name = function != nullptr ? function->name : "nowhere";
        const std::uint64_t offset = function != nullptr ? expected[i][state_pc] - function->start.value : 0;
        return "state " + std::to_string(i) + ", at " + name + "+" + std::to_string(offset) + ": " + text;
    }
    return states.size() == expected.size() ? "" : "another number of states";
}

void plant_many(Rig &rig, std::span<const Candidate *const> chosen, const TrapBytes &traps, bool stepped) {
    if (plant_all(rig, chosen, traps)) {
        const Outcome outcome = rig.planted.run(stepped);
        const std::string where = std::to_string(chosen.size()) + " at once";
        rig.compare(where, outcome);
        for (const Candidate *each : chosen) rig.compare_count(each->name(), each->at, rig.executed(each->at));
        const std::string differs = stepped ? difference(rig, outcome.states) : "";
        if (!differs.empty()) rig.complain(where, differs);
    }
    rig.planted.clear();
}

TEST(PlantedDetours, ManyAtOnce) {
    EXPECT_EQ(complaints([](Rig &rig) {
                  Random random(1);
                  for (std::uint64_t round = 0; round < 60; ++round)
                      plant_many(rig, apart(rig, random, round % 4), round % 2 == 0 ? all_bytes() : breakpoints(),
                                 /*stepped=*/false);
              }),
              "");
}

TEST(PlantedDetours, ShowTheStatesThatThereWouldBe) {
    EXPECT_EQ(complaints([](Rig &rig) {
                  Random random(2);
                  for (std::uint64_t skipped : {0, 1})
                      plant_many(rig, apart(rig, random, skipped), all_bytes(), /*stepped=*/true);
              }),
              "");
}

} // namespace

} // namespace ktrace::test

#endif
