// Compile: for each Location of a probe the Program that runs there, made of the command's options (Actions), the debug
// information of the location's module and the calling convention.
//
// Invariants: debug information is opened only where something asks for it: typed arguments (-j), return values (-r) or
// an EXPR with a name of the target; a counting -k never does. Types stay with the module: a LocationInfo is good for
// as long as its Location's module lives.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "probe/probe.h"
#include "probe/resolve.h"
#include "program/lower/scope.h"
#include "program/run/program.h"
#include "program/run/record.h"
#include "program/tables/state.h"

namespace ktrace::probe {

struct Compiled {
    program::Program program;
    program::LocationInfo info;
};

/// A place that a probe is to be compiled for.
struct LocationRequest {
    std::uint32_t number = 0; // the probe's
    Kind kind = Kind::probe;
    Location location;
    std::uint64_t bias = 0;
    std::optional<program::Binding> watched = {}; // a watchpoint's
    const OwnOptions *own = nullptr;              // of its probe, instead of the command's
};

struct CompileOptions {
    /// These locations come on top of others (a library was loaded, a child was forked): an EXPR that fits none of them
    /// is n/a there, no error.
    bool additional = false;
    /// The modules of the process: where a cast names a type that the location's own module does not know, they may.
    std::span<const Loaded> modules = {};
    /// That of the process, in which the loader has put where errno is; nullptr: not to be read.
    Memory *memory = nullptr;
};

/// Syntax of all the EXPRs of a command. Error: usage, with the column.
Status check_expressions(const Actions &actions);

/// True where the durations of return probes' calls are asked for: no table takes their place, or an EXPR has
/// `duration`. The EXPRs are right.
bool wants_durations(const Actions &actions);

/// Programs for all locations of a command, in the order of the requests. An EXPR that fits some of those that it is
/// for is n/a at the others; one that fits none is an error (refused, with the column in the EXPR). Error: usage for
/// syntax.
Result<std::vector<Compiled>> compile_all(const Actions &actions, std::span<const LocationRequest> requests,
                                          const CompileOptions &options = {});

/// The part that the locations of one probe share: selection and kind of table. Without a seed --chance takes a random
/// one. `memory`: that of all tables of the trace.
program::ProbeStatePointer make_probe_state(const Actions &actions, std::shared_ptr<program::TableMemory> memory);

} // namespace ktrace::probe
