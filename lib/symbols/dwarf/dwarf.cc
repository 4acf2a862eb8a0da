// Dwarf: opening a file's debug information (dwarf.h). Its questions are answered in dwarf_functions.cc,
// dwarf_inlines.cc, dwarf_lines.cc and dwarf_variables.cc.
#include "symbols/dwarf/internal.h"

#include <cerrno>
#include <cstring>

#include <climits>
#include <fcntl.h>
#include <unistd.h>

#include "symbols/dwarf/die/guard.h"

namespace ktrace::symbols {

namespace {

Result<OpenElf> open_elf(const std::string &path, int fd) {
    OpenElf file;
    file.fd = Fd(fd >= 0 ? ::fcntl(fd, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.fd) {
        auto kind = errno == ENOENT   ? Error::Kind::not_found
                    : errno == EACCES ? Error::Kind::denied
                                      : Error::Kind::system;
        return fail(kind, path + ": " + std::strerror(errno));
    }
    elf_version(EV_CURRENT);
    file.elf.reset(elf_begin(file.fd.get(), ELF_C_READ_MMAP, nullptr));
    if (!file.elf || elf_kind(file.elf.get()) != ELF_K_ELF)
        return fail(Error::Kind::refused, path + " is not an ELF file, or is damaged");
    return file;
}

/// The directory that an open file is in, as elfutils finds it out for .dwo files.
std::string directory_of(int fd) {
    char path[PATH_MAX];
    ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
    std::string_view found(path, length > 0 ? static_cast<std::size_t>(length) : 0);
    return std::string(found.substr(0, found.rfind('/') == found.npos ? 0 : found.rfind('/')));
}

/// Address ranges of the file's executable segments.
std::vector<AddressRange> executable_ranges(Elf *elf) {
    std::vector<AddressRange> ranges;
    std::size_t count = 0;
    if (elf_getphdrnum(elf, &count) != 0) return ranges;
    for (std::size_t i = 0; i < count && i < 0xffff; ++i) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) break;
        if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0 &&
            header.p_vaddr + header.p_memsz > header.p_vaddr)
            ranges.emplace_back(header.p_vaddr, header.p_vaddr + header.p_memsz);
    }
    return ranges;
}

/// C++ takes `struct` and `class` for one another.
bool is_class(unsigned tag) { return tag == DW_TAG_structure_type || tag == DW_TAG_class_type; }

/// The definition of a type that a unit only declares: in the same unit, else in any, by its qualified name. Without
/// patience the whole file is looked at only where that has been done already or is cheap.
std::optional<Dwarf_Die> find_definition(void *owner, Dwarf_Die declared, const std::string &name, bool patient) {
    constexpr std::uint64_t cheap = 8U << 20; // bytes of .debug_info
    auto &impl = *static_cast<Dwarf::Impl *>(owner);
    unsigned kind = tag(declared);
    auto find_in = [&](Unit &unit) -> std::optional<Dwarf_Die> {
        std::string_view plain = own_name(declared);
        for (std::uint32_t at : impl.names.in(unit, Names::List::definitions, plain)) {
            Dwarf_Die die = die_at(impl.units.outline(unit).definitions[at], impl.units.top(unit).cu);
            unsigned found = tag(die);
            bool same_kind = found == kind || (is_class(found) && is_class(kind));
            if (same_kind && own_name(die) == plain && impl.units.qualified_name(die) == name) return die;
        }
        return std::nullopt;
    };
    if (auto die = find_in(impl.units.of(declared))) return die;
    if (!patient && !impl.names.ready() && impl.units.info_size() > cheap) return std::nullopt;
    for (Unit *unit : impl.names.units(Names::Kind::type, own_name(declared)))
        if (auto die = find_in(*unit)) return die;
    return std::nullopt;
}

} // namespace

Dwarf::Impl::Impl(OpenElf debug_file, OpenElf image_file, std::unique_ptr<::Dwarf, DwarfEnd> opened)
    : debug(std::move(debug_file)), image(std::move(image_file)), handle(std::move(opened)),
      units(handle.get(), executable_ranges(debug.elf.get()), directory_of(debug.fd.get())),
      frames(image.elf ? image.elf.get() : debug.elf.get(), handle.get()), types(units), names(units) {
    types.set_definitions(this, find_definition);
}

Dwarf::Dwarf(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dwarf::~Dwarf() = default;

Result<std::unique_ptr<Dwarf>> Dwarf::open(const std::string &path, int fd, const std::string &image_path,
                                           int image_fd) {
    auto debug = open_elf(path, fd);
    if (!debug) return tl::unexpected(std::move(debug.error()));
    OpenElf image;
    if (!image_path.empty() || image_fd >= 0) {
        auto opened = open_elf(image_path, image_fd);
        if (opened) image = std::move(*opened); // without it frames are not described, the rest is
    }
    if (auto bounded = check_expansion(debug->elf.get(), path); !bounded) return tl::unexpected(bounded.error());
    std::unique_ptr<::Dwarf, DwarfEnd> handle(dwarf_begin_elf(debug->elf.get(), DWARF_C_READ, nullptr));
    if (handle)
        if (auto checked = check_shared_file(handle.get(), directory_of(debug->fd.get())); !checked)
            return tl::unexpected(checked.error());
    Dwarf_CU *first = nullptr;
    int units = handle ? dwarf_get_units(handle.get(), nullptr, &first, nullptr, nullptr, nullptr, nullptr) : 1;
    if (units > 0)
        return fail(Error::Kind::not_found, path + " has no debug information",
                    "compile it with -g, or install its debug symbols");
    if (units < 0) return fail(Error::Kind::refused, path + " has damaged debug information: " + dwarf_errmsg(-1));
    return std::unique_ptr<Dwarf>(
        new Dwarf(std::make_unique<Impl>(std::move(*debug), std::move(image), std::move(handle))));
}

const std::string &Dwarf::missing_part() const { return impl_->units.missing_part(); }

const value::TypeTable &Dwarf::types() const { return impl_->types.table(); }

namespace {

/// `struct foo`: the word in front says which kinds of types are meant.
bool is_meant(unsigned tag, std::string_view word) {
    if (word == "struct" || word == "class") return is_class(tag);
    if (word == "union") return tag == DW_TAG_union_type;
    if (word == "enum") return tag == DW_TAG_enumeration_type;
    return word.empty();
}

} // namespace

const value::Type *Dwarf::type_named(std::string_view name) {
    std::size_t space = name.find(' ');
    std::string_view word = name.substr(0, space == name.npos ? 0 : space);
    if (word == "struct" || word == "class" || word == "union" || word == "enum")
        name.remove_prefix(space + 1);
    else
        word = {}; // a space in the name: of a template's arguments
    std::string_view plain = last_component(name);
    const value::Type *declared = nullptr;
    for (Unit *unit : impl_->names.units(Names::Kind::type, plain))
        for (std::uint32_t at : impl_->names.in(*unit, Names::List::definitions, plain)) {
            Dwarf_Die die = die_at(impl_->units.outline(*unit).definitions[at], impl_->units.top(*unit).cu);
            if (!is_meant(tag(die), word) || !is_named(impl_->units, die, name)) continue;
            const value::Type *type = impl_->types.complete(impl_->types.type(die));
            if (!type->incomplete) return type;
            declared = type;
        }
    return declared;
}

const value::Type *Dwarf::complete(const value::Type *type) { return impl_->types.complete(type); }

} // namespace ktrace::symbols
