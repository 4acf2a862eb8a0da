// How types are written, as a declaration in the source would be (dwarf_types.h: type_name, strip).
#include "symbols/dwarf/types/types.h"

namespace ktrace::symbols {

namespace {

constexpr int deepest_name = 24;
constexpr std::size_t longest = 2048;
constexpr std::size_t most_parameters = 32;

bool is_qualifier(unsigned tag) {
    switch (tag) {
    case DW_TAG_const_type:
    case DW_TAG_volatile_type:
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
    case DW_TAG_immutable_type:
    case DW_TAG_packed_type:
    case DW_TAG_shared_type: return true;
    default: return false;
    }
}

std::string_view qualifier_word(unsigned tag) {
    switch (tag) {
    case DW_TAG_const_type: return "const";
    case DW_TAG_volatile_type: return "volatile";
    case DW_TAG_restrict_type: return "restrict";
    case DW_TAG_atomic_type: return "_Atomic";
    default: return "";
    }
}

/// Writes a type around a declarator, from the inside out.
class Writer {
  public:
    explicit Writer(Units &units) : units_(units) {}

    /// The declaration of `inner` (empty, `*`, `(*)(int)`, …) with this type; nullopt: void.
    std::string write(std::optional<Dwarf_Die> die, std::string inner, int depth) {
        if (depth > deepest_name || inner.size() > longest) return spaced("...", inner);
        if (!die) return spaced("void", inner);
        auto target = reference(*die, DW_AT_type);
        switch (unsigned kind = tag(*die)) {
        case DW_TAG_pointer_type: return pointer(*die, target, "*", std::move(inner), depth);
        case DW_TAG_reference_type: return pointer(*die, target, "&", std::move(inner), depth);
        case DW_TAG_rvalue_reference_type: return pointer(*die, target, "&&", std::move(inner), depth);
        case DW_TAG_array_type:
            for (const Dimension &each : dimensions(*die, units_.language(*die)))
                inner += "[" + (each.count ? std::to_string(each.count) : "") + "]";
            return write(target, std::move(inner), depth + 1);
        case DW_TAG_subroutine_type: return write(target, inner + parameters(*die, depth), depth + 1);
        case DW_TAG_ptr_to_member_type: {
            auto of = reference(*die, DW_AT_containing_type);
            std::string star = (of ? write(*of, "", depth + 1) : std::string("?")) + "::*" + inner;
            return write(target, parenthesised(target, star), depth + 1);
        }
        default:
            if (is_qualifier(kind)) return qualified(kind, target, std::move(inner), depth);
            return spaced(plain(*die, kind), inner);
        }
    }

  private:
    static std::string spaced(std::string base, const std::string &inner) {
        if (inner.empty()) return base;
        return base + " " + inner;
    }

    static std::string parenthesised(std::optional<Dwarf_Die> target, std::string inner) {
        Dwarf_Die at{};
        if (target) at = *target;
        for (int step = 0; target && step < deepest_name && is_qualifier(tag(at)); ++step) {
            target = reference(at, DW_AT_type);
            if (target) at = *target;
        }
        unsigned kind = target ? tag(at) : 0;
        bool needed = kind == DW_TAG_array_type || kind == DW_TAG_subroutine_type;
        return needed ? "(" + inner + ")" : inner;
    }

    std::string pointer(Dwarf_Die die, std::optional<Dwarf_Die> target, const char *sign, std::string inner,
                        int depth) {
        std::string_view own = own_name(die); // Rust names its pointers
        if (!own.empty()) return spaced(std::string(own), inner);
        return write(target, parenthesised(target, sign + inner), depth + 1);
    }

    std::string qualified(unsigned kind, std::optional<Dwarf_Die> target, std::string inner, int depth) {
        std::string word(qualifier_word(kind));
        if (word.empty()) return write(target, std::move(inner), depth + 1);
        unsigned below = target ? tag(*target) : 0;
        if (below == DW_TAG_pointer_type || below == DW_TAG_ptr_to_member_type)
            return write(target, inner.empty() ? word : word + " " + inner, depth + 1);
        std::string rest = write(target, std::move(inner), depth + 1);
        return rest.starts_with(word + " ") ? rest : word + " " + rest; // a const array of const elements
    }

    std::string parameters(Dwarf_Die die, int depth) {
        std::string list;
        std::size_t count = 0;
        for (Dwarf_Die child : children(die)) {
            unsigned kind = tag(child);
            if (kind != DW_TAG_formal_parameter && kind != DW_TAG_unspecified_parameters) continue;
            if (flag(child, DW_AT_artificial)) continue; // the `this` of a pointer to a member function
            if (count++ != 0) list += ", ";
            if (kind == DW_TAG_unspecified_parameters || count > most_parameters || list.size() > longest) {
                list += "...";
                break;
            }
            list += write(reference(child, DW_AT_type), "", depth + 1);
        }
        if (count == 0 && flag(die, DW_AT_prototyped) && units_.is_c(die)) list = "void";
        return "(" + list + ")";
    }

    std::string plain(Dwarf_Die die, unsigned kind) {
        die = through_signature(die);
        std::string name = units_.qualified_name(die);
        std::string_view word = kind == DW_TAG_structure_type     ? "struct"
                                : kind == DW_TAG_class_type       ? "class"
                                : kind == DW_TAG_union_type       ? "union"
                                : kind == DW_TAG_enumeration_type ? "enum"
                                                                  : "";
        if (name.empty()) return word.empty() ? "?" : std::string(word) + " {...}";
        if (!word.empty() && units_.is_c(die)) return std::string(word) + " " + name;
        return name;
    }

    Units &units_;
};

} // namespace

std::string type_name(Units &units, Dwarf_Die die) { return Writer(units).write(die, "", 0); }

std::optional<Dwarf_Die> strip(Dwarf_Die die) {
    std::optional<Dwarf_Die> at = die;
    for (int step = 0; at && step < 64; ++step) {
        unsigned kind = tag(*at);
        if (kind != DW_TAG_typedef && kind != DW_TAG_template_alias && !is_qualifier(kind))
            return through_signature(*at);
        at = reference(*at, DW_AT_type);
    }
    return std::nullopt;
}

Dwarf_Die through_signature(Dwarf_Die die) {
    if (auto target = reference(die, DW_AT_signature)) return *target;
    return die;
}

} // namespace ktrace::symbols
