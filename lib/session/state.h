// State: what one trace holds from its first look at the target to its summary. Passive; the functions of this room
// change it, each file for its own reason.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "os/interrupts.h"
#include "output/sink.h"
#include "output/writer.h"
#include "probe/compile.h"
#include "probe/probe.h"
#include "program/record.h"
#include "program/state.h"
#include "session/config.h"
#include "session/session.h"
#include "target/modules.h"
#include "trap/world.h"

namespace ktrace::session {

/// A place in a file that a probe of the user's is at, in however many processes: its counts outlive them.
struct CountedLocation {
    std::size_t probe = 0; // index in Config::probes
    const symbols::Module *module = nullptr;
    std::uint64_t vaddr = 0;
    program::LocationInfo info;
    program::Counters counters;
    program::ProbeStatePointer state; // its table; selection is the probe's
};

/// A location armed (or to be armed) in one address space: the program is compiled for where it lies there.
struct ArmedLocation {
    trap::Armed armed;
    std::shared_ptr<program::Program> program; // shared with the copies in forked children
    std::size_t location = 0;                  // index in State::locations
    VirtAddr at;
};

/// A probe of an indirect function whose resolver the process has not run yet: where that is.
struct WaitingIfunc {
    std::size_t probe = 0;
    probe::Location resolver;
    std::uint64_t bias = 0;
    VirtAddr at() const { return VirtAddr{resolver.vaddr + bias}; }
};

/// What is armed in one address space.
struct Arming {
    std::vector<std::unique_ptr<ArmedLocation>> locations;
    std::vector<std::unique_ptr<trap::Armed>> internal;    // the loader's breakpoint, unwinding
    std::unordered_set<const symbols::Module *> unwinders; // modules whose unwinding functions are watched already
    std::vector<WaitingIfunc> ifuncs;
    std::unordered_map<pid_t, VirtAddr> resolving; // by task: the resolver that it is in
    bool waits_for_loader = false;                 // nothing is armed yet: the program's libraries are not mapped
};

struct State {
    State(const Config &c, const Voice &v) : config(c), voice(v) {}

    const Config &config;
    const Voice &voice;
    trap::World world;
    target::ModuleCache modules;
    std::vector<program::ProbeStatePointer> probe_states;    // by probe
    std::vector<std::unique_ptr<CountedLocation>> locations; // by LocationInfo index in records
    std::unordered_map<trap::Ground *, Arming> armings;
    std::unordered_set<std::string> told; // notices that were given
    std::vector<bool> placed;             // by probe: found somewhere
    std::unique_ptr<output::Writer> writer;
    std::unique_ptr<output::Sink> sink;
    std::unique_ptr<output::Symbolizer> symbolizer;
    os::Interrupts *interrupts = nullptr;
    std::unordered_map<pid_t, std::string> last_names; // of tasks and processes, as last seen
    Pid program;                                       // run: the program's process
    int program_status = -1;                           // its end, as run returns it; -1: it runs
    int trouble = 0;                                   // exit status of what went wrong
};

/// A notice on standard error, once per text.
void tell_once(State &state, const std::string &text);

} // namespace ktrace::session
