// Reads the table, a line a function. A line that it does not understand is a bug of the table: a test reads all of it.
#include "prototypes/prototypes.h"

#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "prototypes/table.h"

namespace ktrace::prototypes {

namespace {

using value::Type;

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::optional<std::string_view> without_prefix(std::string_view text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return std::nullopt;
    return text.substr(prefix.size());
}

/// A number of C's: its kind, size and sign.
struct Number {
    std::string_view name;
    Type::Kind kind;
    std::uint8_t size;
    bool is_signed;
};

constexpr Type::Kind integer = Type::Kind::integer;
constexpr Number numbers[] = {
    {"char", Type::Kind::char_, 1, static_cast<char>(-1) < 0}, // by the psABI
    {"int", integer, 4, true},
    {"unsigned int", integer, 4, false},
    {"long", integer, 8, true},
    {"unsigned long", integer, 8, false},
    {"double", Type::Kind::floating, 8, true},
    {"float", Type::Kind::floating, 4, true},
    {"size_t", integer, 8, false},
    {"ssize_t", integer, 8, true},
    {"off_t", integer, 8, true},
    {"loff_t", integer, 8, true},
    {"time_t", integer, 8, true},
    {"intptr_t", integer, 8, true},
    {"nfds_t", integer, 8, false},
    {"dev_t", integer, 8, false},
    {"iconv_t", integer, 8, true},
    {"mode_t", integer, 4, false},
    {"pid_t", integer, 4, true},
    {"uid_t", integer, 4, false},
    {"gid_t", integer, 4, false},
    {"id_t", integer, 4, false},
    {"key_t", integer, 4, true},
    {"socklen_t", integer, 4, false},
    {"useconds_t", integer, 4, false},
};

class Reader {
  public:
    Reader() {
        for (std::string_view rest = libc_table; !rest.empty();) {
            const std::string_view line = rest.substr(0, rest.find('\n'));
            rest.remove_prefix(std::min(rest.size(), line.size() + 1));
            if (!line.empty() && !line.starts_with('#')) read(line);
        }
    }

    value::TypeTable types;
    std::deque<Prototype> prototypes;
    std::unordered_map<std::string_view, const Prototype *> by_name;

  private:
    void read(std::string_view line) {
        const std::size_t open = line.find('('), close = line.rfind(')');
        KT_CHECK(open != line.npos && close != line.npos);
        Prototype &prototype = prototypes.emplace_back();
        auto [type, name] = declared(line.substr(0, open));
        prototype.function.name = prototype.function.qualified = name;
        prototype.function.result = type;
        prototype.sets_errno = trimmed(line.substr(close + 1)) == "errno";
        std::string_view rest = line.substr(open + 1, close - open - 1);
        if (rest == "void") rest = {};
        while (!rest.empty()) {
            const std::string_view each = rest.substr(0, rest.find(','));
            rest.remove_prefix(std::min(rest.size(), each.size() + 1));
            add_parameter(prototype, trimmed(each));
        }
        by_name.emplace(prototype.function.name, &prototype);
    }

    void add_parameter(Prototype &prototype, std::string_view text) {
        if (text == "...") {
            prototype.function.variadic = true;
            return;
        }
        if (const std::size_t bracket = text.find('['); bracket != text.npos) {
            std::string_view note = text.substr(bracket + 1, text.find(']') - bracket - 1);
            const bool is_written = note.starts_with("out");
            note.remove_prefix(is_written ? 3 : 2);
            prototype.buffers.push_back({prototype.function.parameters.size(), std::string(trimmed(note)), is_written});
            text = trimmed(text.substr(0, bracket));
        }
        auto [type, name] = declared(text);
        symbols::Parameter parameter;
        parameter.name = name;
        parameter.type = type;
        prototype.function.parameters.push_back(std::move(parameter));
    }

    /// `const char *name`: its type and its name.
    std::pair<const Type *, std::string_view> declared(std::string_view text) {
        const std::size_t name = text.find_last_of(" *") + 1;
        std::string_view type = trimmed(text.substr(0, name));
        return {type_named(std::string(type)), text.substr(name)};
    }

    const Type *type_named(const std::string &name) {
        auto known = named_.find(name);
        if (known == named_.end()) known = named_.emplace(name, make_type(name)).first;
        return known->second;
    }

    const Type *make_type(std::string_view name) {
        if (name == "void") return nullptr;
        if (name.ends_with('*')) return make_pointer(name);
        if (auto plain = without_prefix(name, "const ")) return type_named(std::string(*plain));
        for (const Number &number : numbers)
            if (number.name == name) return make_number(number);
        if (const Type *names = make_names(types, name)) return names;
        Type &type = types.make();
        type.kind = Type::Kind::structure;
        type.name = name;
        type.incomplete = true;
        return &type;
    }

    const Type *make_number(const Number &number) {
        Type &type = types.make();
        type.kind = number.kind;
        type.size = number.size;
        type.is_signed = number.kind == Type::Kind::char_ ? static_cast<char>(-1) < 0 : number.is_signed;
        type.name = number.name;
        return &type;
    }

    const Type *make_pointer(std::string_view name) {
        std::string_view target = trimmed(name.substr(0, name.size() - 1));
        if (target.ends_with("const")) target = trimmed(target.substr(0, target.size() - 5)); // char *const *
        const Type *pointed = type_named(std::string(target));
        Type &type = types.make();
        type.kind = Type::Kind::pointer;
        type.size = 8;
        type.name = name;
        type.target = pointed;
        return &type;
    }

    std::map<std::string, const Type *> named_;
};

const Reader &table() {
    static const Reader read;
    return read;
}

/// `open` of `open64@@GLIBC_2.2.5`, `__open`, `__libc_open64`.
const Prototype *found(std::string_view name) {
    const auto &known = table().by_name;
    auto at = known.find(name);
    return at == known.end() ? nullptr : at->second;
}

} // namespace

const Prototype *prototype_named(std::string_view name) {
    name = name.substr(0, name.find('@'));
    for (std::string_view prefix : {"", "__libc_", "__isoc99_", "__"}) {
        auto rest = without_prefix(name, prefix);
        if (!rest || rest->empty()) continue;
        if (const Prototype *known = found(*rest)) return known;
        if (!rest->ends_with("64")) continue;
        if (const Prototype *known = found(rest->substr(0, rest->size() - 2))) return known;
    }
    return nullptr;
}

const value::TypeTable &types() { return table().types; }

bool is_c_library(std::string_view soname) {
    for (std::string_view part :
         {"libc.so", "libpthread.so", "libm.so", "librt.so", "libdl.so", "libc.musl-", "ld-musl-"})
        if (soname.starts_with(part)) return true;
    return false;
}

std::vector<const Prototype *> all() {
    std::vector<const Prototype *> every;
    for (const Prototype &each : table().prototypes) every.push_back(&each);
    return every;
}

} // namespace ktrace::prototypes
