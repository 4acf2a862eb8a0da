// Separate debug files: where distributions put the symbols and the DWARF of stripped files, by build-id and by
// .gnu_debuglink (GDB manual, "Debugging Information in Separate Files").
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "symbols/elf/elf.h"

namespace ktrace::symbols {

/// An opened debug file and where it was found.
struct DebugFile {
    std::unique_ptr<ElfFile> elf; // nullptr: none found
    std::string path;
};

/// Looks on this machine: /usr/lib/debug/.build-id/…, then the debug link's places beside `shown_path` and in
/// /usr/lib/debug. `root` is the directory that stands for / in the target's mount namespace (empty: ours); a build-id
/// is also looked up in ours. A file whose build-id or CRC is not the wanted one is passed over.
DebugFile find_debug_file(const ElfFile &file, const std::string &shown_path, const std::string &root);

/// The contents of a file that may have debug information or symbols; nullptr where it is none. `path` is its name in
/// errors.
std::unique_ptr<ElfFile> parse_debug_file(Fd fd, const std::string &path);

/// A build-id in hex.
std::string hex(std::span<const std::byte> bytes);

} // namespace ktrace::symbols
