// Rows of tables, as tests of sinks make them.
#pragma once

#include <utility>
#include <vector>

#include "program/tables/aggregate.h"

namespace ktrace::program {

inline Row counted(std::vector<KeyPart> key, std::uint64_t count) {
    Row row;
    row.key = std::move(key);
    row.count = count;
    return row;
}

} // namespace ktrace::program
