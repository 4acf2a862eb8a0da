// EhFrame: where functions begin and end according to .eh_frame, which stripped programs keep (LSB core, "Exception
// Frames"). Extents only; unwinding is unwind's business.
//
// Invariants: read in place, on demand; every length, pointer and count is checked, and a search takes a bounded number
// of steps.
#pragma once

#include <cstdint>
#include <optional>

#include "symbols/elf/elf.h"

namespace ktrace::symbols {

/// Code at [start, end).
struct Extent {
    std::uint64_t start = 0, end = 0;
};

class EhFrame {
  public:
    explicit EhFrame(const ElfFile &file) : file_(&file) {}

    /// The extent of the frame description that covers vaddr, by .eh_frame_hdr's sorted table, else by reading
    /// .eh_frame from its start. A function that the compiler split has one for each part.
    std::optional<Extent> covering(std::uint64_t vaddr) const;

  private:
    const ElfFile *file_;
};

} // namespace ktrace::symbols
