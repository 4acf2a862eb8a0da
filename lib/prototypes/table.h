// The texts and names that the prototypes are made of.
#pragma once

#include <string_view>

#include "value/type.h"

namespace ktrace::prototypes {

/// libc.prototypes.
extern const std::string_view libc_table;

/// The type of this name among the sets of names that integers stand for (`open_flags`, `error`), made in `table`;
/// nullptr: there is none.
const value::Type *make_names(value::TypeTable &table, std::string_view name);

} // namespace ktrace::prototypes
