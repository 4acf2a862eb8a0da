// Frames: the canonical frame address at an address, by the call frame information of .eh_frame or .debug_frame.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>
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

    /// A CFA of the plainest and usual form: a register plus an offset.
    struct Rule {
        unsigned reg = 0;
        std::int64_t offset = 0;
        auto operator<=>(const Rule &) const = default;
    };
    std::optional<Rule> cfa_rule(std::uint64_t vaddr);
    /// The rule that holds for most bytes of [low, high): that of a function's body, between prologue and epilogues.
    std::optional<Rule> usual_cfa_rule(std::uint64_t low, std::uint64_t high);

  private:
    void open();
    struct FrameFree {
        void operator()(Dwarf_Frame *frame) const { std::free(frame); }
    };
    using Frame = std::unique_ptr<Dwarf_Frame, FrameFree>;
    Frame frame_at(std::uint64_t vaddr);
    static std::vector<Dwarf_Op> cfa_of(const Frame &frame);
    static std::optional<Rule> rule_of(const std::vector<Dwarf_Op> &ops);

    Elf *image_;
    ::Dwarf *dwarf_;
    bool opened_ = false;
    Dwarf_CFI *eh_frame_ = nullptr;    // ours to end
    Dwarf_CFI *debug_frame_ = nullptr; // libdw's
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::optional<Rule>> usual_;
};

} // namespace ktrace::symbols
