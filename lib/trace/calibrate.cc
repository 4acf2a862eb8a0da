#include "trace/calibrate.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "engine/hit/dispatch.h"
#include "os/self/own_signals.h"
#include "probe/compile.h"

namespace ktrace::trace {

using engine::Attachment;
using probe::Kind;

namespace {

/// Calls of a function: those that come first, and then so many batches.
struct Samples {
    std::size_t warm_up, batch, batches;
    constexpr std::size_t all() const { return warm_up + batch * batches; }
};
// A stop takes some 10 µs, and attaching is to begin at once.
constexpr Samples usual{20, 25, 4};
constexpr Samples elsewhere{10, 15, 3}; // fewer: stops take longer there
constexpr Samples steps{2, 6, 2};       // and a step takes ten times as long on some virtual machines
constexpr std::size_t fewest = 10;      // calls from which something is known, where the time was up before
// Others may be busy on the processors: attaching is not to take long because of that.
constexpr std::uint64_t longest_ns = 1'000'000'000, longest_apart_ns = 300'000'000;
constexpr std::size_t most_rounds = 4; // times as many calls as are wanted, where some are missed
constexpr unsigned step_every = 8;     // rounds
static_assert(usual.all() / step_every > steps.all());

/// The functions that the child calls again and again. Their bodies take a nanosecond.
[[gnu::noinline]] void inner() { asm volatile("" ::: "memory"); }
[[gnu::noinline]] void alone() { asm volatile("" ::: "memory"); }
void (*volatile call_inner)() = inner;
void (*volatile call_alone)() = alone;
[[gnu::noinline]] void around() {
    call_inner();
    asm volatile("" ::: "memory");
}
void (*volatile call_around)() = around;
// An instruction that no emulation does away with; not a compiler's function, which may begin with a jump.
extern "C" void ktrace_stepped();
asm(".pushsection .text\n"
    ".type ktrace_stepped, %function\n"
    "ktrace_stepped:\n"
    "    nop\n"
    "    ret\n"
    ".size ktrace_stepped, . - ktrace_stepped\n"
    ".popsection\n");
void (*volatile call_stepped)() = ktrace_stepped;
[[gnu::noinline]] void around_step() {
    call_stepped();
    asm volatile("" ::: "memory");
}
void (*volatile call_around_step)() = around_step;

/// Asks the kernel for short turns, which come sooner: on a processor that others keep busy a stop costs a turn, and
/// ten times as many calls are seen in the same time. Source: sched_setattr(2); sched_runtime of a usual task is its
/// slice since Linux 6.12, and ignored before.
void take_short_turns() {
    struct { // struct sched_attr, whose header does not go with <sched.h>
        std::uint32_t size, policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime, deadline, period;
    } attributes{};
    constexpr std::uint64_t shortest_ns = 100'000;
    if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    if (attributes.policy != SCHED_OTHER) return;
    attributes.runtime = shortest_ns;
    ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

[[noreturn]] void work_for_ever() {
    ::raise(SIGSTOP);
    for (unsigned round = 0;; round++) {
        call_alone();
        call_around();
        if (round % step_every == 0) call_around_step();
    }
}

VirtAddr address_of(void (*function)()) { return VirtAddr{reinterpret_cast<std::uint64_t>(function)}; }

/// A trace of a child of ktrace's own, by the same engine that traces others.
class Rehearsal {
  public:
    explicit Rehearsal(pid_t child) : child_{child} {}

    /// Takes hold of the child, which has stopped itself, and arms it.
    bool begin() {
        if (os::seize(Tid{child_.value}) != 0) return false;
        engine::Task &task = engine_.tasks[child_.value];
        task.tid = Tid{child_.value};
        task.pid = child_;
        engine_.waiter.watch(task.tid);
        engine_.waiter.look_often(true);
        engine_.processes[child_.value] = std::make_unique<engine::Process>();
        auto stop = engine_.waiter.next_of(task.tid);
        if (!stop || stop->kind != os::Stop::Kind::group) return false;
        os::Stopped stopped(engine_.waiter, *stop);
        probe::Actions none, post;
        post.post = true; // seen after the instruction, too: it is stepped
        bool armed = look() && arm_at(alone, Kind::ret, none, stopped) && arm_at(around, Kind::ret, none, stopped) &&
                     arm_at(around_step, Kind::ret, none, stopped) && arm_at(inner, Kind::entry, none, stopped) &&
                     arm_at(ktrace_stepped, Kind::probe, post, stopped);
        std::move(stopped).resume(os::Resume::run);
        ::kill(child_.value, SIGCONT);
        return armed;
    }

    /// Durations as they are without a correction, for a limited time; a signal to ktrace ends it. `is_apart`: the
    /// child runs on another processor now.
    void run(bool is_apart) {
        calls_ = is_apart ? elsewhere : usual;
        with_steps_ = !is_apart;
        by_stops_ = by_switches_ = {};
        engine_.waiter.spin(is_apart);
        const std::uint64_t end = monotonic_ns() + (with_steps_ ? longest_ns : longest_apart_ns);
        while (!done() && by_stops_.of[0].size() < most_rounds * calls_.all() && monotonic_ns() < end &&
               !os::OwnSignals::are_pending()) {
            auto stop = engine_.waiter.next(os::Waiter::Block::briefly);
            if (!stop) {
                if (engine_.waiter.none_left()) return;
                continue;
            }
            engine::dispatch(engine_, *stop);
            read_records();
        }
    }

    /// The figures measured by one of the clocks; where they are too few, nothing.
    engine::Correction result(engine::Clock clock) {
        std::vector<std::uint64_t>(&durations)[3] = (clock == engine::Clock::switches ? by_switches_ : by_stops_).of;
        if (durations[0].size() < fewest || durations[1].size() < fewest) return {};
        auto without = [](std::uint64_t from, std::uint64_t part) { return from > part ? from - part : 0; };
        engine::Correction found;
        found.per_call_ns = typical(durations[0], calls_);
        found.per_stop_ns = without(typical(durations[1], calls_), found.per_call_ns);
        // The probe's stop, and that at the end of the step.
        if (durations[2].size() >= fewest)
            found.per_step_ns = without(typical(durations[2], steps), found.per_call_ns + 2 * found.per_stop_ns);
        found.resolution_ns = spread(durations[0], calls_);
        found.rare_ns = without(rare(durations[0], calls_), found.per_call_ns);
        found.of_call = errors(durations[0], found.per_call_ns);
        found.of_stop = difference(errors(durations[1], found.per_call_ns + found.per_stop_ns), found.of_call);
        return found;
    }

  private:
    bool look() {
        process().target.pid = child_;
        auto space = target::AddressSpace::open(child_);
        auto maps = os::read_maps(child_);
        if (!space || !maps) return false;
        process().target.maps = std::move(*maps);
        process().target.space = std::move(*space);
        process().target.syscall_instruction = target::find_syscall_instruction(process().target);
        process().space = std::make_shared<engine::AddressSpaceState>();
        process().space->memory = process().target.space;
        return true;
    }

    bool arm_at(void (*function)(), Kind kind, const probe::Actions &actions, os::Stopped &stopped) {
        probe::LocationRequest request;
        request.kind = kind;
        request.location.vaddr = request.location.function = address_of(function).value;
        auto compiled = probe::compile_all(actions, std::span(&request, 1));
        auto site = engine::make_site(*process().space, address_of(function));
        if (!compiled || !site) return false;
        if (!engine::give_slot(*process().space, **site)) {
            auto mapped = engine::map_arena(*process().space, process().target, engine_.waiter, stopped, (*site)->at,
                                            (*site)->at, 16);
            if (!mapped || !engine::give_slot(*process().space, **site)) return false;
        }
        Probe &probe = *probes_.emplace_back(std::make_unique<Probe>());
        probe.program = std::move(compiled->front().program);
        probe.state = probe::make_probe_state(actions, std::make_shared<program::TableMemory>());
        probe.attachment.kind = kind == Kind::ret     ? Attachment::Kind::ret
                                : kind == Kind::entry ? Attachment::Kind::entry
                                                      : Attachment::Kind::probe;
        probe.attachment.location = static_cast<std::uint32_t>(probes_.size() - 1);
        probe.attachment.program = &probe.program;
        probe.attachment.state = probe.state.get();
        probe.attachment.counters = &probe.counters;
        probe.attachment.maxactive = 16;
        (*site)->attachments.push_back(&probe.attachment);
        return engine::arm(*process().space, **site).has_value();
    }

    void read_records() {
        std::span<const std::byte> rest = engine_.records.bytes();
        while (rest.size() >= sizeof(program::RecordHeader)) {
            program::RecordHeader header;
            std::memcpy(&header, rest.data(), sizeof header);
            if (header.moment == program::Moment::ret) keep(header.location, engine_.timed.last);
            rest = rest.subspan(header.size);
        }
        engine_.records.clear();
    }

    void keep(std::uint32_t function, const engine::CallTime &time) {
        by_stops_.of[function].push_back(time.stops_ns);
        if (time.switches_ns) by_switches_.of[function].push_back(*time.switches_ns);
    }

    bool done() const {
        return by_stops_.of[1].size() >= calls_.all() && (!with_steps_ || by_stops_.of[2].size() >= steps.all());
    }

    /// The least of what is usual in some batches, in each what a tenth of the calls does not reach: a moment in which
    /// the machine was busy with something else is left out, so that rather too little is subtracted than too much. Of
    /// fewer calls than are wanted the least, for the same reason.
    static std::uint64_t typical(std::vector<std::uint64_t> &samples, const Samples &how) {
        if (samples.size() < how.all()) return *std::min_element(samples.begin(), samples.end());
        std::uint64_t least = ~std::uint64_t{0};
        for (std::size_t i = 0; i < how.batches; i++) {
            auto first = samples.begin() + static_cast<std::ptrdiff_t>(how.warm_up + i * how.batch),
                 middle = first + static_cast<std::ptrdiff_t>(how.batch / 10);
            std::nth_element(first, middle, first + static_cast<std::ptrdiff_t>(how.batch));
            least = std::min(least, *middle);
        }
        return least;
    }

    /// The middle half of the calls of one function lies within so much, or the clock knows no less.
    static std::uint64_t spread(std::vector<std::uint64_t> &samples, const Samples &how) {
        const std::size_t left_out = samples.size() < how.all() ? 0 : how.warm_up;
        auto first = samples.begin() + static_cast<std::ptrdiff_t>(left_out), last = samples.end();
        auto quarter = first + (last - first) / 4, three = first + (last - first) / 4 * 3;
        std::nth_element(first, three, last);
        std::nth_element(first, quarter, three);
        timespec clock{};
        ::clock_getres(CLOCK_MONOTONIC, &clock);
        return std::max(static_cast<std::uint64_t>(clock.tv_nsec), *three - *quarter);
    }

    /// The duration that one in a hundred calls of one function exceeds, or the longest of fewer.
    static std::uint64_t rare(std::vector<std::uint64_t> &samples, const Samples &how) {
        const std::size_t left_out = samples.size() < how.all() ? 0 : how.warm_up;
        auto first = samples.begin() + static_cast<std::ptrdiff_t>(left_out), last = samples.end();
        auto at = last - 1 - (last - first) / 100;
        std::nth_element(first, at, last);
        return *at;
    }

    /// The rest of calls that take no time, when so much is taken off. A clock knows no less than a nanosecond.
    program::TimeErrors errors(std::vector<std::uint64_t> samples, std::uint64_t taken) const {
        if (samples.size() >= calls_.all()) // else all count
            samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(calls_.warm_up));
        std::sort(samples.begin(), samples.end());
        double sum = 0;
        for (std::uint64_t &each : samples) sum += static_cast<double>(each = each > taken ? each - taken : 0);
        auto below = [&](std::size_t percent) {
            return std::max(1.0, static_cast<double>(samples[(samples.size() - 1) * percent / 100]));
        };
        return {std::max(1.0, sum / static_cast<double>(samples.size())), below(50), below(90), below(99)};
    }

    static program::TimeErrors difference(const program::TimeErrors &all, const program::TimeErrors &part) {
        return {std::max(0.0, all.avg - part.avg), std::max(0.0, all.p50 - part.p50), std::max(0.0, all.p90 - part.p90),
                std::max(0.0, all.p99 - part.p99)};
    }

    engine::Process &process() { return *engine_.processes.at(child_.value); }

    struct Probe {
        program::Program program;
        program::ProbeStatePointer state;
        program::Counters counters;
        Attachment attachment;
    };
    Pid child_;
    Samples calls_ = usual;
    bool with_steps_ = true;
    engine::Engine engine_;
    std::vector<std::unique_ptr<Probe>> probes_;
    struct Durations {
        std::vector<std::uint64_t> of[3]; // alone, around, around_step
    };
    Durations by_stops_, by_switches_; // of all calls; of those whose switches were recorded
};

} // namespace

namespace {

void bind(pid_t task, int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cpu), &one);
    ::sched_setaffinity(task, sizeof one, &one);
}

struct ByClock {
    engine::Correction switches, stops;
};

struct Measured {
    ByClock together, apart;
};

/// With the child where ktrace is, and then on a processor of its own (`other`; -1: there is none).
Measured rehearse(int other) {
    pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        take_short_turns();
        work_for_ever();
    }
    Measured measured;
    int status = 0;
    if (child < 0) return measured;
    if (::waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status)) {
        Rehearsal rehearsal(child);
        const bool has_begun = rehearsal.begin();
        auto run = [&](bool is_apart) {
            if (has_begun) rehearsal.run(is_apart);
            return ByClock{rehearsal.result(engine::Clock::switches), rehearsal.result(engine::Clock::stops)};
        };
        measured.together = run(false);
        if (other >= 0) {
            bind(child, other);
            measured.apart = run(true);
        }
    }
    ::kill(child, SIGKILL);
    while (::waitpid(child, &status, __WALL) == child ? WIFSTOPPED(status) : errno == EINTR) {
    }
    return measured;
}

/// The processors differ (`apart`), or not; where the former was not measured, the latter serves.
engine::Corrections::Pair pair(const engine::Correction &together, engine::Correction apart) {
    apart.per_step_ns = together.per_step_ns;
    return {together, apart.per_call_ns != 0 ? apart : together};
}

/// A processor that ktrace may use besides the one that it is on; -1: none.
int another_processor(const cpu_set_t &allowed, int own) {
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (cpu != own && CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) return cpu;
    return -1;
}

} // namespace

engine::Corrections calibrate() {
    cpu_set_t before;
    ::sched_getaffinity(0, sizeof before, &before);
    const int own = std::max(0, ::sched_getcpu()), other = another_processor(before, own);
    bind(0, own);
    engine::Corrections corrections;
    const auto [together, apart] = rehearse(other);
    corrections.by_switches = pair(together.switches, apart.switches);
    corrections.by_stops = pair(together.stops, apart.stops);
    ::sched_setaffinity(0, sizeof before, &before);
    return corrections;
}

Calibration::Calibration() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    Fd from(ends[0]), to(ends[1]);
    process_ = ::fork();
    if (process_ == 0) {
        engine::Corrections measured = calibrate();
        ::_exit(::write(to.get(), &measured, sizeof measured) == sizeof measured ? 0 : 1);
    }
    if (process_ > 0) from_ = std::move(from);
}

Calibration::~Calibration() {
    if (!result()) ::kill(process_, SIGKILL);
    if (process_ > 0) ::waitpid(process_, nullptr, 0); // if the Waiter has not taken its end
}

std::optional<engine::Corrections> Calibration::result() {
    engine::Corrections measured;
    if (!from_) return measured;
    const ssize_t got = ::read(from_.get(), &measured, sizeof measured);
    if (got < 0) return std::nullopt;
    from_ = Fd();
    return got == sizeof measured ? measured : engine::Corrections{};
}

} // namespace ktrace::trace
