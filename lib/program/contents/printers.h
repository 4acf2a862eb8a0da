// The printers, a family each. All: append the code to `w`; false: the type is not made as expected.
#pragma once

#include "program/contents/writer.h"

namespace ktrace::program::contents {

using Printer = bool (*)(Writer &w);

bool show_text(Writer &w); // texts.cc

bool show_vector(Writer &w); // sequences.cc
bool show_array(Writer &w);
bool show_span(Writer &w);
bool show_deque(Writer &w);
bool show_list(Writer &w);
bool show_forward_list(Writer &w);

bool show_map(Writer &w); // maps.cc
bool show_set(Writer &w);
bool show_unordered_map(Writer &w);
bool show_unordered_set(Writer &w);

bool show_optional(Writer &w); // choices.cc
bool show_variant(Writer &w);
bool show_tuple(Writer &w);

bool show_unique_ptr(Writer &w); // pointers.cc
bool show_shared_ptr(Writer &w);
bool show_atomic(Writer &w);

bool show_duration(Writer &w); // times.cc
bool show_time_point(Writer &w);

bool show_rust_vec(Writer &w); // other_languages.cc
bool show_slice(Writer &w);
bool is_ada_array(const value::Type &type);
bool show_ada_array(Writer &w);

bool show_interface(Writer &w); // interfaces.cc

} // namespace ktrace::program::contents
