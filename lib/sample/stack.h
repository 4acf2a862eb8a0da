// stack: where every thread of some processes is now.
#pragma once

#include "trace/config.h"
#include "trace/voice.h"

namespace ktrace::sample {

/// `ktrace stack`: prints where the threads of the configuration's processes are. Returns the exit status: 1 where
/// something of one of them could not be read.
int stack(const trace::Config &config, const trace::Voice &voice);

} // namespace ktrace::sample
