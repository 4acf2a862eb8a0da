// Trace: the state of one trace from its first look at the target to its summary. Passive; the functions of this room
// change it, each file for its own reason.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "engine/space/engine.h"
#include "os/self/own_signals.h"
#include "output/live_line.h"
#include "output/sink.h"
#include "output/writer.h"
#include "probe/compile.h"
#include "probe/registry.h"
#include "probe/watch_spec.h"
#include "program/run/record.h"
#include "program/tables/state.h"
#include "recovery/ledger.h"
#include "target/modules.h"
#include "trace/calibrate.h"
#include "trace/config.h"
#include "trace/voice.h"

namespace ktrace::ctl {
class Control;
}

namespace ktrace::engine {
struct Event;
}

namespace ktrace::trace {

/// A place in a file that a probe of the user's is at, in however many processes: its counts outlive them.
struct CountedLocation {
    std::uint32_t probe = 0; // its number
    const symbols::Module *module = nullptr;
    std::uint64_t vaddr = 0;
    std::uint32_t instance = 0;  // of an inlined function; others may begin there, too
    VirtAddr last_at;            // where it was armed last
    bool too_costly = false;     // --max-overhead has switched it off; its probe may be on
    std::uint32_t maxactive = 0; // return probes: most calls in flight in a process
    program::LocationInfo info;
    program::Counters counters;
    program::ProbeStatePointer state; // its table; selection is the probe's
};

/// An event in the output that may not be with the kernel yet.
struct Unwritten {
    std::uint64_t end = 0;      // the Writer's taken() behind it
    std::uint32_t location = 0; // index in Trace::installed.locations
};

/// A location with its attachment in one address space: the program is compiled for where it lies there.
struct AttachedLocation {
    engine::Attachment attachment;
    std::shared_ptr<program::Program> program; // shared with the copies in forked children
    std::size_t location = 0;                  // index in Trace::installed.locations
    VirtAddr at;
    std::optional<probe::WatchPlace> watch; // it has no site, but debug registers
};

/// A probe of an indirect function whose resolver the process had not run when it was planned.
struct WaitingIfunc {
    std::uint32_t probe = 0; // its number
    probe::Location resolver;
    std::uint64_t bias = 0;
    bool has_chosen = false; // it has been run since, and what it chose is armed
    VirtAddr at() const { return VirtAddr{resolver.vaddr + bias}; }
};

/// The locations armed in one address space.
struct Arming {
    std::vector<std::unique_ptr<AttachedLocation>> locations;
    std::vector<std::unique_ptr<AttachedLocation>> dismissed; // removed, while tasks are in the middle of their sites
    std::vector<std::unique_ptr<engine::InternalBreakpoint>> internal;
    std::unordered_set<std::uint64_t> unwinders; // biases of modules whose unwinding functions are watched already
    std::vector<WaitingIfunc> ifuncs;
    std::unordered_map<pid_t, VirtAddr> resolving; // by task: the resolver that it is in
    bool waits_for_loader = false;                 // nothing is armed yet: the program's libraries are not mapped
    bool told_to_wait = false;                     // that was reported, and its end will be
    bool unloads = false;                          // a thread is on its way through dlclose
};

/// An order that needs the corrections of durations: stops are served until they are measured.
struct PostponedOrder {
    std::uint64_t client = 0;
    Order order;
    Calibration calibration;
};

/// The plugins of a trace, as the rooms below session see them.
class Plugins {
  public:
    virtual ~Plugins() = default;

    /// Loads all of them and runs their module_init on behalf of a process that can be probed, the first time that it
    /// is called. `stopped`: a task of it that is at a stop, or nullptr. Errors: a plugin that cannot be loaded or
    /// refuses.
    virtual Status start(engine::Process &process, os::Stopped *stopped) = 0;
    virtual bool have_started() const = 0;
    /// Libraries, or with an exec all of them, have come or gone: their probes may be at other places now.
    virtual void on_places_changed() = 0;
    /// Runs their module_exit, the last one first.
    virtual void stop() = 0;
};

struct Trace;

/// For the loop, which is below lifecycle: the events of a trace that are no hits.
struct EventHandlers {
    /// Does what an Event asks for; its task runs on (or was let go).
    void (*handle_event)(Trace &trace, engine::Event event);
    /// A task was found to be gone without a stop that said so.
    void (*handle_end)(Trace &trace, Tid tid);
};

/// The user's probes where they are installed, and their counts.
struct Installed {
    std::vector<std::unique_ptr<CountedLocation>> locations; // by LocationInfo index in records
    /// Their indices by probe, module, vaddr and inlined instance.
    std::map<std::tuple<std::uint32_t, const symbols::Module *, std::uint64_t, std::uint32_t>, std::size_t> location_of;
    std::unordered_map<engine::AddressSpaceState *, Arming> armings;
    bool has_dismissed = false; // some Arming has dismissed locations
};

/// All that goes out, and the names in it.
struct Output {
    std::unordered_set<std::string> told;                                        // notices that were given
    std::unordered_map<pid_t, std::vector<target::LoadedModule>> former_modules; // for the names in tables
    std::unique_ptr<output::Writer> writer;
    std::deque<Unwritten> unwritten;                                 // in the order in which the writer was given them
    std::set<std::pair<std::int32_t, std::uint32_t>> dropped_halves; // by tid and location: a post event may follow
    std::unique_ptr<output::Sink> sink;
    std::unique_ptr<output::Symbolizer> symbolizer;
    /// Called before the modules of a process change, or go with it: names that wait for them are looked up now. May be
    /// empty.
    std::function<void(const engine::Process &)> before_modules_change;
    /// Where a record is of a probe of ktrace's own, takes it: true. May be empty.
    std::function<bool(std::span<const std::byte>, const program::RecordHeader &)> takes;
    std::shared_ptr<output::LiveLine> live_line; // nullptr: there is none
};

/// Orders to the running trace (ctl).
struct Orders {
    std::shared_ptr<ctl::Control> control;     // nullptr: no socket could be had
    std::unique_ptr<PostponedOrder> postponed; // one that waits for a calibration
};

/// The program of `run`.
struct StartedProgram {
    Pid pid;         // 0: with attach
    int status = -1; // its end, as run returns it; -1: it runs
};

struct Trace {
    Trace(const Config &c, const Voice &v, const EventHandlers &e) : config(c), voice(v), events(e) {}

    const Config &config;
    const Voice &voice;
    const EventHandlers &events;
    std::shared_ptr<Plugins> plugins; // nullptr: the command has none. Outlives what is armed: handlers see its end
    engine::Engine engine;
    target::ModuleCache modules;
    probe::Registry registry;
    Installed installed;
    Output output;
    Orders orders;
    StartedProgram program;
    os::OwnSignals *interrupts = nullptr;
    std::function<bool()> gives_up;      // true: the user does not wait for the search any more; may be empty
    int trouble = 0;                     // exit status of what went wrong
    std::uint64_t overhead_since_ns = 0; // when the window began that Engine::overhead is of
    bool time_has_begun = false;         // of --duration
    std::uint64_t began_ns = 0;          // CLOCK_MONOTONIC, when it has
};

/// A notice on standard error, once per text.
void tell_once(Trace &trace, const std::string &text);

/// True where the hits of this location are to be seen.
bool is_on(const Trace &trace, const CountedLocation &location);

/// True where a process is known to be in the middle of a dlclose. Its loader's breakpoint reports the end of that.
bool anyone_unloads(const Trace &trace);

/// True where a process is still without its libraries: nothing is installed in it before they are mapped.
bool anyone_waits_for_loader(const Trace &trace);

} // namespace ktrace::trace
