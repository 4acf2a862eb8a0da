// Injections: what --set-arg, --set-reg, --set-ret, --skip and --set-errno mean at one location.
#pragma once

#include "probe/compile_scope.h"
#include "probe/probe.h"
#include "program/lower/build.h"

namespace ktrace::probe {

/// The change that actions.injections[index] wants, with where it goes, or why it cannot be made there. `value`: the
/// parsed EXPR, borrowed. errno is set when the function is skipped, else at its return.
program::Injection make_injection(const Actions &actions, std::size_t index, const program::Tree &value, Kind kind,
                                  LocationScope &entry, LocationScope &after);

} // namespace ktrace::probe
