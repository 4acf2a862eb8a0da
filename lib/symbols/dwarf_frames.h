// Frames: the canonical frame address at an address, by the call frame information of .eh_frame or .debug_frame.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <elfutils/libdw.h>

namespace ktrace::symbols {

class Frames {
  public:
    /// `image`: the ELF file that is loaded (.eh_frame has no bytes in a separate debug file); both live longer.
    Frames(Elf *image, ::Dwarf *dwarf) : image_(image), dwarf_(dwarf) {}
    ~Frames();
    Frames(const Frames &) = delete;

    /// The operations that compute the CFA at this vaddr; nullopt where nothing describes it.
    std::optional<std::vector<Dwarf_Op>> cfa(std::uint64_t vaddr);

  private:
    void open();

    Elf *image_;
    ::Dwarf *dwarf_;
    bool opened_ = false;
    Dwarf_CFI *eh_frame_ = nullptr;    // ours to end
    Dwarf_CFI *debug_frame_ = nullptr; // libdw's
};

} // namespace ktrace::symbols
