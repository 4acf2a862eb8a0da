// Labels: how events, tables and the summary call a location and a value.
#pragma once

#include <cstddef>
#include <string>

#include "program/run/record.h"

namespace ktrace::output {

/// `do_work+0x4`, or the address where no symbol is known.
void append_place(std::string &out, const program::LocationInfo &location);

/// `do_work`, or the address.
void append_function(std::string &out, const program::LocationInfo &location);

/// `do_work+0x4 [worker]`.
std::string place_with_module(const program::LocationInfo &location);

/// `; Foo::bar(int)`: which one of several of that name it is. Nothing where there are no others.
void append_which(std::string &out, const program::LocationInfo &location);

/// `,"symbol":…,"offset":…,"module":…`, and the address of what has no symbol.
void append_location_json(std::string &out, const program::LocationInfo &location);
/// `,"which":…`, likewise.
void append_which_json(std::string &out, const program::LocationInfo &location);

/// The text before a value's `=`: an EXPR as given, but plain `args.n` and `var.n` without their first part;
/// a parameter without a name is `arg` and its number.
std::string label_of(const program::Field &field, std::size_t number);

} // namespace ktrace::output
