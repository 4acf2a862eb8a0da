#include "tests/tools/functions.h"

#include <algorithm>

#include "symbols/elf/bytes.h"
#include "x86_64/probeable.h"

namespace ktrace::tools {

using symbols::ElfFile;
using symbols::Image;
using symbols::Module;
using symbols::Symbol;

Result<File> File::open(const std::string &path) {
    File file;
    auto module = Module::open(path, path);
    if (!module) return tl::unexpected(module.error());
    file.module_ = *module;
    auto image = Image::open(path);
    if (!image) return tl::unexpected(image.error());
    auto elf = ElfFile::parse(std::move(*image), path, ElfFile::Role::loaded);
    if (!elf) return tl::unexpected(elf.error());
    file.elf_ = std::move(*elf);
    return file;
}

/// Programs have no name of their own; the C library, which has an interpreter, has one.
bool File::is_library() const { return module_->position_independent() && !module_->soname().empty(); }

Function File::extent() const {
    Function whole{UINT64_MAX, 0, 0};
    for (const symbols::Segment &each : module_->segments()) {
        whole.start = std::min(whole.start, each.vaddr);
        whole.end = std::max(whole.end, each.vaddr + each.memory_size);
    }
    return whole;
}

std::vector<Function> File::functions() const {
    std::vector<Function> all;
    add_symbols(all);
    add_frames(all);
    std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.start < b.start; });
    const auto same = [](const auto &a, const auto &b) { return a.start == b.start; };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const symbols::Section *section = elf_->section_at(all[i].start);
        all[i].padding_end = section != nullptr ? section->vaddr + section->size : all[i].end;
        if (i + 1 < all.size()) all[i].padding_end = std::min(all[i].padding_end, all[i + 1].start);
    }
    return all;
}

void File::add_symbols(std::vector<Function> &all) const {
    for (const Symbol &each : module_->symbols()) {
        if (each.kind != Symbol::Kind::function && each.kind != Symbol::Kind::ifunc) continue;
        if (each.name.find(".cold") != std::string_view::npos || !module_->executable(each.vaddr)) continue;
        const std::uint64_t end = module_->function_end(each.vaddr);
        if (end > each.vaddr) all.push_back({each.vaddr, end, end});
    }
}

/// By .eh_frame_hdr's table in the form that linkers write: its head is 12 bytes, then pairs of distances from its own
/// start (LSB core, "Exception Frame Header").
void File::add_frames(std::vector<Function> &all) const {
    const auto header = elf_->eh_frame_header();
    if (!header) return;
    const auto bytes = elf_->at(*header);
    if (symbols::load<std::uint32_t>(bytes, 0) != 0x3b031b01) return;
    const std::uint32_t count = symbols::load<std::uint32_t>(bytes, 8).value_or(0);
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto distance = symbols::load<std::int32_t>(bytes, 12 + std::uint64_t{8} * i);
        if (!distance) return;
        const std::uint64_t start = *header + static_cast<std::uint64_t>(std::int64_t{*distance});
        const auto function = module_->function_at(start);
        if (function && function->start == start && function->end > start)
            all.push_back({start, function->end, function->end});
    }
}

std::vector<std::uint64_t> File::return_sites(const Function &function) const {
    const auto code = this->code(function.start, function.end - function.start);
    arch::x86::Reached reached(code);
    reached.reach_the_rest();
    std::vector<std::uint64_t> all;
    for (std::size_t at = 0; at < code.size(); ++at) {
        arch::x86::Insn insn;
        if (!reached.is_start(at) || reached.is_within(at)) continue;
        if (arch::x86::decode(code.subspan(at), insn) != arch::x86::Decode::ok) continue;
        if (insn.kind != arch::x86::Kind::call || at + insn.length >= code.size()) continue;
        all.push_back(function.start + at + insn.length);
    }
    return all;
}

} // namespace ktrace::tools
