// hit: runs the probes of a site for one stopped task: filters and programs, records, calls that begin and that return.
#pragma once

#include "engine/space/engine.h"
#include "engine/space/places.h"
#include "os/tracee/stopped.h"
#include "program/run/program.h"

namespace ktrace::engine {

/// The requests of a site's probes for the rest of the hit.
struct Follows {
    Places post;            // those that want a post moment
    bool pc_is_set = false; // a handler has set the pc: the instruction is not run
};

/// The probes of the site, before its instruction runs.
Follows run_pre(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped);

/// Those of `wanted` (as from run_pre), after the instruction.
void run_post(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped, const Places &wanted);

/// The calls that have ended with this arrival at a return address, youngest first.
void run_returns(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped);

/// The calls that end with the return instruction at this site, youngest first.
void run_exits(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped);

} // namespace ktrace::engine
