#include "symbols/elf/sequences.h"

#include <algorithm>
#include <cstddef>

#include <elf.h>

#include "symbols/elf/bytes.h"

namespace ktrace::symbols {

namespace {

/// The kernel's description of a sequence (struct rseq_cs).
struct Descriptor {
    std::uint32_t version = 0, flags = 0;
    std::uint64_t start = 0, length = 0, abort = 0;
};

constexpr std::uint64_t signature = 4; // bytes before an abort handler, which the kernel compares

constexpr const char *descriptors = "__rseq_cs", *pointers = "__rseq_cs_ptr_array";

bool is_relative(std::uint16_t machine, std::uint64_t type) {
    return (machine == EM_X86_64 && type == R_X86_64_RELATIVE) || (machine == EM_AARCH64 && type == R_AARCH64_RELATIVE);
}

/// The addresses of a section's entries, so far as the file has them: its size may say anything.
std::vector<std::uint64_t> entries_of(const ElfFile &file, const Section *section, std::uint64_t size) {
    std::vector<std::uint64_t> entries;
    const std::uint64_t present = section ? file.at(section->vaddr, section->size).size() : 0;
    for (std::uint64_t at = 0; at + size <= present; at += size) entries.push_back(section->vaddr + at);
    return entries;
}

} // namespace

Sequences::Sequences(const ElfFile &file) {
    const std::vector<std::uint64_t> described = entries_of(file, file.section(descriptors), sizeof(Descriptor)),
                                     pointed_to = entries_of(file, file.section(pointers), sizeof(std::uint64_t));
    if (described.empty() && pointed_to.empty()) return;
    if (auto table = file.dynamic(DT_RELA)) {
        auto entries = file.at(*table, file.dynamic(DT_RELASZ).value_or(0));
        for (std::uint64_t at = 0; auto entry = load<Elf64_Rela>(entries, at); at += sizeof(Elf64_Rela))
            if (is_relative(file.machine(), ELF64_R_TYPE(entry->r_info)))
                relocated_.push_back({entry->r_offset, static_cast<std::uint64_t>(entry->r_addend)});
        std::sort(relocated_.begin(), relocated_.end(), [](const auto &a, const auto &b) { return a.at < b.at; });
    }
    for (std::uint64_t descriptor : described) add_described_by(file, descriptor);
    for (std::uint64_t pointer : pointed_to) add_described_by(file, pointer_at(file, pointer));
    relocated_ = {};
    std::sort(starts_.begin(), starts_.end());
    std::sort(ranges_.begin(), ranges_.end(), [](const Range &a, const Range &b) { return a.start < b.start; });
    std::vector<Range> merged;
    for (const Range &range : ranges_)
        if (!merged.empty() && range.start < merged.back().end)
            merged.back().end = std::max(merged.back().end, range.end);
        else
            merged.push_back(range);
    ranges_ = std::move(merged);
}

/// The pointer at this address once the file is loaded, in its own addresses: the dynamic linker takes it from its
/// table, where it stands there, and not from what is in the file.
std::uint64_t Sequences::pointer_at(const ElfFile &file, std::uint64_t vaddr) const {
    auto known = std::lower_bound(relocated_.begin(), relocated_.end(), vaddr,
                                  [](const Pointer &pointer, std::uint64_t at) { return pointer.at < at; });
    if (known != relocated_.end() && known->at == vaddr) return known->value;
    return load<std::uint64_t>(file.at(vaddr, sizeof(std::uint64_t)), 0).value_or(0);
}

void Sequences::add_described_by(const ElfFile &file, std::uint64_t descriptor) {
    auto told = load<Descriptor>(file.at(descriptor, sizeof(Descriptor)), 0);
    if (!told || told->version != 0 || told->length == 0) return;
    const std::uint64_t start = pointer_at(file, descriptor + offsetof(Descriptor, start));
    const std::uint64_t abort = pointer_at(file, descriptor + offsetof(Descriptor, abort));
    if (start + told->length < start || abort - start < told->length || abort < signature) return;
    starts_.push_back(start);
    ranges_.push_back({start, start + told->length});
    ranges_.push_back({abort - signature, abort});
}

std::optional<InSequence> Sequences::around(std::uint64_t vaddr, std::uint64_t length) const {
    const std::uint64_t end = vaddr + std::max<std::uint64_t>(length, 1);
    auto range = std::upper_bound(ranges_.begin(), ranges_.end(), vaddr,
                                  [](std::uint64_t at, const Range &r) { return at < r.end; });
    if (range == ranges_.end()) return std::nullopt;
    // The instruction before the first one announces the sequence to the kernel: were its copy run elsewhere, the
    // thread would be in the sequence, for the kernel, without being there.
    if (range->start < end || std::binary_search(starts_.begin(), starts_.end(), end)) return InSequence{range->end};
    return std::nullopt;
}

} // namespace ktrace::symbols
