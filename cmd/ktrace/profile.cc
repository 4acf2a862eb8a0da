// profile: where the time of processes goes.
#include "sample/profile.h"

#include "commands.h"
#include "voice.h"

namespace ktrace::cli {

int profile(const Invocation &invocation) { return sample::profile(invocation.config, invocation.profile, voice()); }

} // namespace ktrace::cli
