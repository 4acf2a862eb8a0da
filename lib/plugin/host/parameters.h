// Parameters: name=value for the variables that a plugin has declared with module_param.
#pragma once

#include <string>
#include <string_view>

struct ktrace_plugin;

namespace ktrace::plugin::host {

/// Sets what `given` says: name=value, separated by spaces; quotes keep spaces together. `plugin` may be nullptr: it
/// has no parameters. Returns why that is not possible, empty: done.
std::string set_parameters(const ktrace_plugin *plugin, std::string_view given);

} // namespace ktrace::plugin::host
