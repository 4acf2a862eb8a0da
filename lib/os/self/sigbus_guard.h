// Files that are cut short while they are mapped: the page behind a mapped file's new end raises SIGBUS when it is
// read. Programs, libraries and debug files are mapped, by ktrace and by elfutils, and other processes may write to
// them: a build that copies a library over the old one cuts it short, too.
//
// From the page that is missing to the end of the mapping there are zeros then, and readers go on: those of
// ELF and DWARF take them for a damaged file. The files that were cut are remembered, so that they can be reported.
#pragma once

#include <string>
#include <vector>

namespace ktrace::os {

/// Installs the handler for SIGBUS, for this process and those that it forks. Only private mappings that cannot be
/// written are mended; any other SIGBUS does what it did before, and a thread that blocks the signal is ended by it.
void survive_cut_files();

/// A sentence for each file that was found cut short since the last call, as far as they are remembered (a few).
std::vector<std::string> take_cut_file_notices();

} // namespace ktrace::os
