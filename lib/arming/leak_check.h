// Leak check: LeakSanitizer stops its own process by ptrace when that ends, which fails where a tracer is there
// already.
#pragma once

#include <string>
#include <string_view>

#include "target/process.h"

namespace ktrace::arming {

/// A notice that names the program and the way out; empty where the program looks for no leaks.
std::string leak_check_notice(const target::Process &process);

/// Whether options of a sanitizer (`ASAN_OPTIONS`, `a=1:b=0`) turn the search for leaks off.
bool turns_leak_check_off(std::string_view options);

} // namespace ktrace::arming
