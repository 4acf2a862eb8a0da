// Frames (dwarf_frames.h).
#include "symbols/dwarf_frames.h"

#include <cstdlib>
#include <memory>
#include <utility>

namespace ktrace::symbols {

Frames::~Frames() {
    if (eh_frame_ != nullptr) dwarf_cfi_end(eh_frame_);
}

void Frames::open() {
    if (std::exchange(opened_, true)) return;
    if (image_ != nullptr) eh_frame_ = dwarf_getcfi_elf(image_);
    if (dwarf_ != nullptr) debug_frame_ = dwarf_getcfi(dwarf_);
}

std::optional<std::vector<Dwarf_Op>> Frames::cfa(std::uint64_t vaddr) {
    open();
    for (Dwarf_CFI *cfi : {eh_frame_, debug_frame_}) {
        Dwarf_Frame *raw = nullptr;
        if (cfi == nullptr || dwarf_cfi_addrframe(cfi, vaddr, &raw) != 0) continue;
        std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(raw, &std::free);
        Dwarf_Op *ops = nullptr;
        std::size_t count = 0;
        if (dwarf_frame_cfa(frame.get(), &ops, &count) == 0 && count != 0)
            return std::vector<Dwarf_Op>(ops, ops + count);
    }
    return std::nullopt;
}

} // namespace ktrace::symbols
