#include "symbols/dwarf/die/guard.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>

#include "base/fd.h"
#include "base/text.h"
#include "symbols/dwarf/die/die.h"
#include "symbols/elf/image.h"

namespace ktrace::symbols {

namespace {

/// The size that a section expands to: SHF_COMPRESSED, or the older .zdebug_* with "ZLIB" and a size in front. 0: it is
/// not compressed, or damaged, which elfutils sees for itself.
std::uint64_t expanded_size(Elf_Scn *section, const GElf_Shdr &header, std::string_view name) {
    if ((header.sh_flags & SHF_COMPRESSED) != 0) {
        GElf_Chdr compressed;
        return gelf_getchdr(section, &compressed) != nullptr ? compressed.ch_size : 0;
    }
    constexpr std::size_t magic = 4, size_at_front = magic + 8;
    if (!name.starts_with(".zdebug")) return 0;
    Elf_Data *raw = elf_rawdata(section, nullptr);
    if (raw == nullptr || raw->d_buf == nullptr || raw->d_size < size_at_front ||
        std::memcmp(raw->d_buf, "ZLIB", magic) != 0)
        return 0;
    std::uint64_t size = 0; // big-endian
    for (std::size_t i = magic; i < size_at_front; i++) size = size << 8 | static_cast<unsigned char *>(raw->d_buf)[i];
    return size;
}

/// Where elfutils looks for a .dwo file: beside the file of the skeleton, then where the compiler has put it.
std::vector<std::string> split_paths(Dwarf_Die skeleton, const std::string &directory) {
    std::string name(text(skeleton, DW_AT_dwo_name));
    if (name.empty()) name = text(skeleton, DW_AT_GNU_dwo_name);
    if (name.empty()) return {};
    if (name.starts_with('/')) return {name};
    std::string compiled(text(skeleton, DW_AT_comp_dir));
    std::vector<std::string> paths{directory + "/" + name};
    if (!compiled.empty()) paths.push_back((compiled.starts_with('/') ? "" : directory + "/") + compiled + "/" + name);
    return paths;
}

bool has_section(Elf *elf, std::string_view wanted) {
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) return false;
    for (Elf_Scn *section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) != nullptr ? elf_strptr(elf, names, header.sh_name) : nullptr;
        if (name != nullptr && name == wanted) return true;
    }
    return false;
}

/// Errors: not_found; refused, as check_split_file.
Status check_file(const std::string &path, bool is_split) {
    Fd at(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!at) return fail(Error::Kind::not_found, path + " is not there");
    auto file = open_regular(std::move(at), path);
    if (!file) return tl::unexpected(file.error());
    std::unique_ptr<Elf, int (*)(Elf *)> elf(elf_begin(file->get(), ELF_C_READ, nullptr), elf_end);
    if (is_split && has_section(elf.get(), ".debug_info")) // of which elfutils reads the wrong part
        return fail(Error::Kind::refused, path + " has debug information of it beside code (-gsplit-dwarf=single)",
                    "its contents are shown without types; -gsplit-dwarf alone makes files that are read");
    return check_expansion(elf.get(), path);
}

} // namespace

Status check_expansion(Elf *elf, const std::string &shown) {
    std::size_t names = 0;
    bool has_names = elf_getshdrstrndx(elf, &names) == 0;
    GElf_Shdr of_names;
    if (has_names && gelf_getshdr(elf_getscn(elf, names), &of_names) != nullptr &&
        (of_names.sh_flags & SHF_COMPRESSED) != 0)
        return fail(Error::Kind::refused, shown + ": the names of its sections are compressed, which no linker does");
    std::uint64_t all = 0;
    for (Elf_Scn *section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr) continue;
        const char *found = has_names ? elf_strptr(elf, names, header.sh_name) : nullptr;
        std::string_view name = found != nullptr ? found : "";
        std::uint64_t size = expanded_size(section, header, name);
        if (size > always_allowed && size / most_times > header.sh_size)
            return fail(Error::Kind::refused, shown + ": its section " + text::escape(name) + " of " +
                                                  std::to_string(header.sh_size) + " bytes claims to expand to " +
                                                  std::to_string(size) + ": it is crafted or damaged");
        all += std::min(size, most_expanded); // the count of sections is below 2^32
    }
    if (all > most_expanded)
        return fail(Error::Kind::refused,
                    shown + ": its debug sections expand to more than " + std::to_string(most_expanded >> 20) + " MiB",
                    "objcopy --decompress-debug-sections makes a file that needs no memory for that");
    return {};
}

Status check_shared_file(::Dwarf *dwarf, const std::string &directory) {
    const char *name = nullptr;
    const void *id = nullptr;
    if (dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id) <= 0) return {};
    auto checked = check_file(*name == '/' ? name : directory + "/" + name, /*is_split=*/false);
    if (!checked && checked.error().kind != Error::Kind::not_found) return checked;
    return {};
}

Status check_split_file(Dwarf_Die skeleton, const std::string &directory) {
    auto paths = split_paths(skeleton, directory);
    bool found = false;
    for (const std::string &path : paths) {
        auto checked = check_file(path, /*is_split=*/true);
        if (!checked && checked.error().kind != Error::Kind::not_found) return checked;
        found = found || checked.has_value();
    }
    if (found || paths.empty()) return {};
    return fail(Error::Kind::not_found, paths.back() + ", which has debug information of it, is not there",
                "its contents are shown without types; packages of such files (.dwp) are not read");
}

} // namespace ktrace::symbols
