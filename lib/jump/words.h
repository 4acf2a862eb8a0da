// Why a site gets no jump, for users.
#pragma once

#include <string_view>

#include "arch/isa_detour.h"

namespace ktrace::jump {

/// A clause about the site; a string constant.
std::string_view words(arch::NoJump why);

} // namespace ktrace::jump
