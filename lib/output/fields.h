// Fields: a record's values, each with the field of the location that it belongs to.
#pragma once

#include <span>

#include "program/tables/record_reader.h"

namespace ktrace::output {

/// Calls each(field, number, node) for the values of a record, in their order; `number` counts the fields of a role
/// from 0. Ends early where the record holds fewer values than the location has fields.
template <class Each>
void for_each_field(std::span<const std::byte> record, const std::vector<program::Field> &fields, Each each) {
    program::RecordReader reader = program::RecordReader::of(record);
    std::size_t seen[11] = {};
    for (const program::Field &field : fields) {
        auto node = reader.next();
        if (!node) return;
        each(field, seen[static_cast<std::size_t>(field.role)]++, *node);
    }
}

} // namespace ktrace::output
