// Where ktrace's own files for plugins are: beside the installed program, or in the tree that it was built in.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace ktrace::plugin {

/// The program that plugins run in. Errors: not_found.
Result<std::string> host_program();
/// The folder that holds our <linux/kprobes.h>. Errors: not_found.
Result<std::string> include_folder();

} // namespace ktrace::plugin
