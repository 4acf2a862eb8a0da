// Injections: what --set-arg, --set-reg, --set-ret and --skip mean at one location.
#pragma once

#include "probe/compile_scope.h"
#include "probe/probe.h"
#include "program/lower/build.h"

namespace ktrace::probe {

/// The change that is wanted, with where it goes, or why it cannot be made there. `value`: the parsed EXPR, borrowed.
program::Injection make_injection(const Actions::Injection &wanted, const program::Tree &value, Kind kind,
                                  LocationScope &entry, LocationScope &after);

} // namespace ktrace::probe
