// Terminal: what a descriptor can show.
#pragma once

namespace ktrace::output {

/// True where it is a terminal on which the cursor can be moved.
bool is_able_terminal(int fd);
/// True where it is one that shows colours, and NO_COLOR is not set.
bool takes_colours(int fd);

} // namespace ktrace::output
