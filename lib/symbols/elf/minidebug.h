// MiniDebugInfo: an ELF file with the .symtab of a stripped one, xz-compressed in its section .gnu_debugdata (Fedora's
// "MiniDebugInfo"). The only user of liblzma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace ktrace::symbols {

/// Decompresses a whole .xz stream. Errors: refused, where it is corrupt or would take more than a bounded amount of
/// memory.
Result<std::vector<std::byte>> decompress_xz(std::span<const std::byte> compressed);

/// The CRC-32 that .gnu_debuglink uses (IEEE 802.3).
std::uint32_t crc32(std::span<const std::byte> bytes);

} // namespace ktrace::symbols
