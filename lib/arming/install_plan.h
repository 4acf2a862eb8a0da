// InstallPlan: the attachments and internal breakpoints that one address space is to get, as data. plan makes it,
// install makes it true.
#pragma once

#include "probe/compile.h"
#include "probe/watch_spec.h"
#include "trace/trace.h"

namespace ktrace::arming {

/// A probe's location in one process, on its way from probe::Location to engine::Attachment.
struct PlannedLocation {
    std::uint32_t probe = 0; // its number
    probe::Location location;
    std::uint64_t bias = 0;
    std::optional<probe::WatchPlace> watch = {}; // of a watchpoint
    probe::Kind kind = probe::Kind::probe;
    probe::Compiled compiled = {};

    VirtAddr at() const { return VirtAddr{location.vaddr + bias}; }
};

struct InstallPlan {
    std::vector<PlannedLocation> locations;
    std::vector<std::unique_ptr<engine::InternalBreakpoint>> internal;
    std::vector<trace::WaitingIfunc> ifuncs; // their resolvers are among the internal breakpoints
    std::vector<std::uint64_t> unwinders;    // biases of the modules whose unwinding functions are among them

    bool empty() const { return locations.empty() && internal.empty() && ifuncs.empty(); }
    void add(const engine::InternalPurpose &purpose, VirtAddr at) {
        internal.push_back(std::make_unique<engine::InternalBreakpoint>());
        internal.back()->purpose = &purpose;
        internal.back()->at = at;
    }
    bool has_return_probe() const {
        for (const PlannedLocation &location : locations)
            if (location.kind == probe::Kind::ret) return true;
        return false;
    }
};

} // namespace ktrace::arming
