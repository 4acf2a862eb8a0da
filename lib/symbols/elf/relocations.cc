#include "symbols/elf/relocations.h"

#include <algorithm>
#include <functional>

#include <elf.h>

#include "symbols/elf/bytes.h"

namespace ktrace::symbols {

namespace {

/// The relocation types of a machine that put a symbol's address, or what a resolver returns, into a slot.
struct Types {
    std::uint16_t machine;
    std::uint32_t jump_slot, global_data, absolute, irelative;
};

constexpr Types machines[] = {
    {EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64, R_X86_64_IRELATIVE},
    {EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64, R_AARCH64_IRELATIVE},
};

const Types *types_of(std::uint16_t machine) {
    for (const Types &types : machines)
        if (types.machine == machine) return &types;
    return nullptr;
}

std::size_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }

} // namespace

Relocations::Relocations(const ElfFile &file, const SymbolTable *dynamic)
    : dynamic_(dynamic), machine_(file.machine()) {
    if (auto table = file.dynamic(DT_RELA)) {
        auto relative = file.dynamic(DT_RELACOUNT).value_or(0);
        read(file.at(*table, file.dynamic(DT_RELASZ).value_or(0)), relative);
    }
    if (auto table = file.dynamic(DT_JMPREL)) read(file.at(*table, file.dynamic(DT_PLTRELSZ).value_or(0)), 0);
    // A static program has no dynamic section; its start-up code finds the IRELATIVE relocations by symbols of the
    // linker's.
    if (!file.dynamic(DT_RELA) && !file.dynamic(DT_JMPREL))
        for (const Section &section : file.sections())
            if (section.type == SHT_RELA && section.allocated()) read(file.contents(section), 0);
    std::sort(slots_.begin(), slots_.end(), [](const Slot &a, const Slot &b) { return a.vaddr < b.vaddr; });
    std::sort(irelative_.begin(), irelative_.end(), [](const auto &a, const auto &b) { return a.slot < b.slot; });
    by_name_.resize(slots_.size());
    std::vector<std::size_t> hashes(slots_.size());
    for (std::uint32_t i = 0; i < slots_.size(); i++) {
        by_name_[i] = i;
        hashes[i] = hash_of(dynamic_->name(slots_[i].symbol));
    }
    std::sort(by_name_.begin(), by_name_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return hashes[a] < hashes[b]; });
}

void Relocations::read(std::span<const std::byte> table, std::uint64_t skip) {
    const Types *types = types_of(machine_);
    if (!types || skip > table.size() / sizeof(Elf64_Rela)) return;
    for (std::uint64_t at = skip * sizeof(Elf64_Rela); auto entry = load<Elf64_Rela>(table, at);
         at += sizeof(Elf64_Rela)) {
        auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(entry->r_info));
        std::uint64_t symbol = ELF64_R_SYM(entry->r_info);
        if (type == types->irelative) {
            irelative_.push_back({entry->r_offset, static_cast<std::uint64_t>(entry->r_addend)});
        } else if (type == types->jump_slot || type == types->global_data ||
                   (type == types->absolute && entry->r_addend == 0)) {
            if (dynamic_ && symbol != 0 && symbol < dynamic_->count()) slots_.push_back({entry->r_offset, symbol});
        }
    }
}

std::vector<std::uint64_t> Relocations::slots(std::string_view name, std::string_view version) const {
    std::size_t wanted = hash_of(name);
    auto hash_at = [this](std::uint32_t i) { return hash_of(dynamic_->name(slots_[i].symbol)); };
    auto first =
        std::partition_point(by_name_.begin(), by_name_.end(), [&](std::uint32_t i) { return hash_at(i) < wanted; });
    std::vector<std::uint64_t> found;
    for (; first != by_name_.end() && hash_at(*first) == wanted; ++first) {
        const Slot &slot = slots_[*first];
        std::string_view slot_version = dynamic_->version(slot.symbol);
        bool fits = version.empty() || slot_version.empty() || slot_version == version;
        if (fits && dynamic_->name(slot.symbol) == name) found.push_back(slot.vaddr);
    }
    std::sort(found.begin(), found.end());
    return found;
}

const Relocations::Slot *Relocations::slot_at(std::uint64_t vaddr) const {
    auto found = std::lower_bound(slots_.begin(), slots_.end(), vaddr,
                                  [](const Slot &slot, std::uint64_t at) { return slot.vaddr < at; });
    return found != slots_.end() && found->vaddr == vaddr ? &*found : nullptr;
}

} // namespace ktrace::symbols
