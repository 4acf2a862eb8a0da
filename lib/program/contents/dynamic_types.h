// DynamicTypes: what a variable of an interface type may hold in one process, as data (Go).
#pragma once

#include <cstdint>
#include <vector>

#include "value/type.h"

namespace ktrace::program::contents {

/// A type and the address of its descriptor.
struct DynamicType {
    std::uint64_t descriptor = 0;
    const value::Type *type = nullptr;
};

struct DynamicTypes {
    std::uint64_t begin = 0, end = 0; // descriptors and their names lie there
    std::vector<DynamicType> types;   // likely ones first; not all
};

} // namespace ktrace::program::contents
