#include "probe/watch_spec.h"

#include <algorithm>

#include "arch/host.h"
#include "base/text.h"
#include "probe/resolve_parts.h"
#include "program/lower/types.h"
#include "symbols/dwarf/dwarf.h"

namespace ktrace::probe {

using arch::WatchRegister;
using value::Type;

namespace {

Error about(std::string_view text, Error::Kind kind, std::size_t column, std::size_t width, std::string message,
            std::string hint = {}) {
    return {kind,
            std::move(message),
            std::move(hint),
            std::string(text),
            static_cast<int>(column),
            static_cast<int>(std::max<std::size_t>(width, 1))};
}

/// A variable with the members and elements that lead to a part of it.
struct Path {
    std::string variable;
    std::string rest; // .limit, [3].name
};

Path split_path(const std::string &name) {
    std::size_t end = std::min(name.find('.'), name.find('['));
    return {name.substr(0, end), end == std::string::npos ? "" : name.substr(end)};
}

struct Part {
    const Type *type = nullptr;
    std::uint64_t offset = 0;
};

const value::Member *member_of(const Type &type, std::string_view name, std::uint64_t &offset) {
    for (const value::Member &member : type.members) {
        if (member.is_static || !member.type) continue;
        if (member.name == name && member.bit_size == 0) {
            offset += member.offset;
            return &member;
        }
        if (!member.name.empty() && !member.is_base) continue;
        std::uint64_t inner = offset + member.offset;
        if (const value::Member *found = member_of(*member.type, name, inner)) {
            offset = inner;
            return found;
        }
    }
    return nullptr;
}

Result<Part> follow(symbols::Dwarf &dwarf, const Type *type, std::string_view rest, std::string_view text) {
    Part part{type, 0};
    auto fault = [&](std::string message) {
        return tl::make_unexpected(about(text, Error::Kind::not_found, 0, text.size(), std::move(message)));
    };
    while (!rest.empty()) {
        std::size_t end = std::min({rest.find('.', 1), rest.find('[', 1), rest.size()});
        std::string_view step = rest.substr(1, end - 1);
        if (part.type) part.type = dwarf.complete(part.type);
        if (!part.type) return fault("the type of what " + std::string(rest) + " is a part of is not known");
        if (rest[0] == '.') {
            const value::Member *member = member_of(*part.type, step, part.offset);
            if (!member)
                return fault(part.type->name + " has no member `" + std::string(step) + "` that can be watched");
            part.type = member->type;
        } else {
            auto index = step.ends_with(']') ? text::parse_u64(step.substr(0, step.size() - 1)) : std::nullopt;
            bool fits = index && part.type->kind == Type::Kind::array && part.type->target &&
                        (part.type->count == 0 || *index < part.type->count);
            if (!fits) return fault(part.type->name + " has no element [" + std::string(step));
            part.offset += *index * part.type->target->size;
            part.type = part.type->target;
        }
        rest.remove_prefix(end);
    }
    return part;
}

const Type *unsigned_of(std::uint64_t length) {
    switch (length) {
    case 1: return &program::types::uint8;
    case 2: return &program::types::uint16;
    case 4: return &program::types::uint32;
    default: return &program::types::uint64;
    }
}

value::Place fixed(std::uint64_t address) {
    value::Place place;
    place.pieces.resize(1);
    place.pieces[0].ops.push_back({value::Op::Code::push, 8, 0, static_cast<std::int64_t>(address)});
    return place;
}

value::Place in_thread(std::int64_t block, std::uint64_t offset) {
    value::Place place = fixed(offset);
    place.pieces[0].ops.push_back({value::Op::Code::tls, 8, 0, block});
    return place;
}

/// Where a variable of the debug information lies: at a fixed address, or in each thread's block.
std::optional<std::uint64_t> constant_of(const value::Place &place, bool &thread) {
    using Code = value::Op::Code;
    if (place.pieces.size() != 1 || place.pieces[0].kind != value::Piece::Kind::memory) return std::nullopt;
    const auto &ops = place.pieces[0].ops;
    thread = ops.size() == 2 && ops[1].code == Code::tls;
    if ((ops.size() != 1 && !thread) || ops[0].code != Code::push) return std::nullopt;
    return static_cast<std::uint64_t>(ops[0].operand);
}

struct Variable {
    const Loaded *loaded = nullptr;
    const Type *type = nullptr;
    std::uint64_t size = 0;
    bool thread = false;
    std::uint64_t address = 0; // thread: offset in the block
};

/// By the debug information of one module; nothing: it does not know the name.
Result<std::optional<Variable>> described(const Loaded &loaded, const Path &path, std::string_view text) {
    symbols::Dwarf *dwarf = loaded.module->dwarf(symbols::DebugSource::local);
    auto found = dwarf ? dwarf->global(path.variable, loaded.bias) : fail(Error::Kind::not_found, "");
    if (!found) return std::optional<Variable>();
    Variable variable{&loaded, nullptr, 0, false, 0};
    auto address = constant_of(found->place, variable.thread);
    if (!address) return std::optional<Variable>();
    auto part = follow(*dwarf, found->type, path.rest, text);
    if (!part) return tl::make_unexpected(part.error());
    variable.type = part->type;
    variable.size = part->type ? part->type->size : 0;
    variable.address = *address + part->offset;
    return std::optional<Variable>(variable);
}

std::optional<Variable> in_symbols(const Loaded &loaded, const Path &path) {
    if (!path.rest.empty()) return std::nullopt;
    for (const symbols::Symbol *symbol : loaded.module->named(path.variable)) {
        bool thread = symbol->kind == symbols::Symbol::Kind::tls;
        if (symbol->kind != symbols::Symbol::Kind::object && !thread) continue;
        return Variable{&loaded, nullptr, symbol->size, thread, symbol->vaddr + (thread ? 0 : loaded.bias)};
    }
    return std::nullopt;
}

std::optional<Variable> code_of(const Loaded &loaded, const Path &path) {
    for (const symbols::Symbol *symbol : loaded.module->named(path.variable))
        if (symbol->kind == symbols::Symbol::Kind::function)
            return Variable{&loaded, nullptr, 1, false, symbol->vaddr + loaded.bias};
    return std::nullopt;
}

std::string near_variables(std::string_view wanted, std::span<const Loaded> modules) {
    std::vector<std::string_view> names;
    for (const Loaded &loaded : modules)
        for (const symbols::Symbol &symbol : loaded.module->symbols())
            if (symbol.kind == symbols::Symbol::Kind::object || symbol.kind == symbols::Symbol::Kind::tls)
                names.push_back(symbol.name);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    auto near = text::nearest(wanted, names, 3);
    return near.empty() ? "" : "did you mean " + listed(near, 3) + "?";
}

/// Why a name that no module has as a variable with such a part cannot be watched, and what can be done instead.
Error no_variable(const WatchSpec &spec, const Path &path, std::span<const Loaded> modules, std::string_view text) {
    auto because = [&](std::string message, std::string hint) {
        return about(text, Error::Kind::not_found, 0, spec.name.size(), std::move(message), std::move(hint));
    };
    for (const Loaded &loaded : modules) {
        if (in_symbols(loaded, {path.variable, {}}))
            return because("what `" + path.variable + "` consists of is not known: " + loaded.module->why_no_dwarf(),
                           "watch bytes of it: ADDRESS/LENGTH");
        if (code_of(loaded, path))
            return because("`" + path.variable + "` is a function, not a variable",
                           "probe it with -k " + path.variable + ", or watch it run: " + path.variable + ":x");
    }
    return because("there is no global, static or thread-local variable `" + path.variable + "`",
                   near_variables(path.variable, modules));
}

Result<Variable> find(const WatchSpec &spec, std::span<const Loaded> modules, std::string_view text) {
    Path path = split_path(spec.name);
    for (const Loaded &loaded : modules) {
        auto typed = described(loaded, path, text);
        if (!typed) return tl::make_unexpected(typed.error());
        if (*typed) return **typed;
        if (auto plain = in_symbols(loaded, path)) return *plain;
        if (spec.when == WatchRegister::When::execute)
            if (auto code = code_of(loaded, path)) return *code;
    }
    return tl::make_unexpected(no_variable(spec, path, modules, text));
}

/// The pieces that debug registers watch, as offsets.
Result<std::vector<WatchRegister>> cut(const WatchSpec &spec, std::uint64_t address, std::uint64_t length,
                                       std::string_view text) {
    constexpr std::uint64_t widest = 8;
    auto refuse = [&](std::string message, std::string hint = {}) {
        return tl::make_unexpected(
            about(text, Error::Kind::refused, 0, text.size(), std::move(message), std::move(hint)));
    };
    if (length == 0) return refuse("its size is not known", "give it: NAME/LENGTH");
    if (spec.when == WatchRegister::When::execute) length = 1;
    bool power = (length & (length - 1)) == 0;
    std::uint64_t alignment = power ? std::min(length, widest) : 1;
    if (address % alignment != 0)
        return refuse("the address is not a multiple of its length, " + std::to_string(length) + " bytes",
                      "watch a smaller length");
    std::vector<WatchRegister> parts;
    for (std::uint64_t at = 0; at < length;) {
        std::uint64_t size = widest;
        while ((address + at) % size != 0 || at + size > length) size /= 2;
        parts.push_back({VirtAddr{at}, static_cast<std::uint8_t>(size), spec.when});
        at += size;
        if (parts.size() > arch::HostNative::watch_registers)
            return refuse(std::to_string(length) + " bytes are more than this machine can watch (" +
                              std::to_string(arch::HostNative::watch_registers) + " times 8)",
                          "watch a part: NAME/LENGTH, or a member");
    }
    return parts;
}

} // namespace

Result<WatchSpec> parse_watch(std::string_view text) {
    WatchSpec spec;
    std::string_view rest = text;
    for (auto [suffix, when] :
         {std::pair(":rw", WatchRegister::When::access), std::pair(":w", WatchRegister::When::write),
          std::pair(":x", WatchRegister::When::execute)}) {
        if (!rest.ends_with(suffix)) continue;
        spec.when = when;
        rest.remove_suffix(std::string_view(suffix).size());
        break;
    }
    if (std::size_t slash = rest.rfind('/'); slash != rest.npos) {
        auto length = text::parse_u64(rest.substr(slash + 1));
        if (!length || *length == 0)
            return tl::make_unexpected(
                about(text, Error::Kind::usage, slash + 1, rest.size() - slash - 1, "a length is a number of bytes"));
        spec.length = *length;
        rest = rest.substr(0, slash);
    }
    if (rest.empty())
        return tl::make_unexpected(about(text, Error::Kind::usage, 0, 1, "a variable or an address is missing",
                                         "NAME|ADDRESS[/LENGTH][:w|rw|x]"));
    std::size_t colon = rest.rfind(':');
    if (colon != rest.npos && colon > 0 && rest[colon - 1] != ':')
        return tl::make_unexpected(
            about(text, Error::Kind::usage, colon, rest.size() - colon,
                  "watchpoints are of the kinds :w (write), :rw (read or write) and :x (execute)"));
    if (rest.starts_with("0x")) {
        auto address = text::parse_u64(rest);
        if (!address) return tl::make_unexpected(about(text, Error::Kind::usage, 0, rest.size(), "that is no address"));
        spec.address = *address;
        return spec;
    }
    spec.name = std::string(rest);
    return spec;
}

Result<WatchPlace> resolve_watch(std::string_view text, std::span<const Loaded> modules) {
    auto spec = parse_watch(text);
    if (!spec) return tl::make_unexpected(spec.error());
    if (arch::HostNative::watch_registers == 0)
        return fail(Error::Kind::refused, "watchpoints are not supported on this machine");
    WatchPlace place;
    Variable variable;
    if (!spec->name.empty()) {
        auto found = find(*spec, modules, text);
        if (!found) return tl::make_unexpected(found.error());
        variable = *found;
    } else {
        variable.address = spec->address;
        variable.size = 8;
    }
    std::uint64_t length = spec->length != 0 ? spec->length : variable.size;
    auto parts = cut(*spec, variable.address, length, text);
    if (!parts) return tl::make_unexpected(parts.error());
    place.parts = std::move(*parts);
    place.at = VirtAddr{variable.address};
    place.in_thread = variable.thread;
    if (variable.loaded) {
        place.bias = variable.loaded->bias;
        place.location.module = variable.loaded->module;
    }
    place.location.vaddr = variable.address - (variable.thread ? 0 : place.bias);
    place.location.symbol = spec->name;
    if (variable.thread) {
        auto block = variable.loaded->module->program_tls();
        if (!block || !variable.loaded->is_program)
            return tl::make_unexpected(about(
                text, Error::Kind::refused, 0, spec->name.size(),
                "`" + spec->name + "` is a thread-local variable of a library: where a thread has it is not known",
                "watch its address"));
        place.at = VirtAddr{static_cast<std::uint64_t>(*block)} + static_cast<std::int64_t>(variable.address);
    }
    if (spec->when != WatchRegister::When::execute) {
        const Type *type = variable.type ? variable.type : unsigned_of(length);
        place.binding = program::Binding{
            type, variable.thread ? in_thread(*variable.loaded->module->program_tls(), variable.address)
                                  : fixed(variable.address)};
    }
    return place;
}

} // namespace ktrace::probe
