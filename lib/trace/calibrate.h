// calibrate: measures, on the machine at hand, what a stop adds to a duration beyond the time that ktrace sees.
#pragma once

#include <optional>

#include <sys/types.h>

#include "base/fd.h"
#include "engine/space/engine.h"

namespace ktrace::trace {

/// Traces empty functions of a child of ktrace's own with the very engine, return probes on two of them and an entry
/// probe inside of one: the time that they seem to take is ktrace's. Takes some 20 ms; where others keep the processors
/// busy, little more than a second, with the measurements so far. A signal to ktrace ends it. Where it cannot be
/// measured: no correction.
engine::Corrections calibrate();

/// The same while others are traced, whose stops can be served meanwhile: in a process of its own, since a wait for the
/// child would answer theirs.
class Calibration {
  public:
    /// Begins with it.
    Calibration();
    /// Where it is not done, it comes to nothing.
    ~Calibration();
    Calibration(const Calibration &) = delete;

    /// Nothing: it is not done yet.
    std::optional<engine::Corrections> result();

  private:
    Fd from_; // the result comes here; none: it could not be begun
    pid_t process_ = -1;
};

} // namespace ktrace::trace
