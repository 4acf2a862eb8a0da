#include "symbols/names/name_pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"
#include "symbols/names/demangle.h"

namespace ktrace::symbols {

namespace {

constexpr std::string_view operator_word = "operator";

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           (static_cast<unsigned char>(c) & 0x80U) != 0;
}

/// Words that demangled names hold without their mangled forms holding them: abbreviations (Ss: std::string, b: bool),
/// operators and descriptions.
constexpr std::string_view unmangled_words = " std allocator basic_string char_traits string basic_istream istream "
                                             "basic_ostream ostream basic_iostream iostream "
                                             "anonymous namespace operator new delete co_await lambda unnamed type "
                                             "auto decltype nullptr_t nullptr sizeof alignof "
                                             "typeid noexcept throw dynamic_cast static_cast const_cast "
                                             "reinterpret_cast void wchar_t bool char signed unsigned short "
                                             "int long float double __int128 __float128 _Complex _Imaginary decimal32 "
                                             "decimal64 decimal128 half char8_t char16_t "
                                             "char32_t const volatile restrict true false vtable for VTT typeinfo name "
                                             "fn guard variable reference temporary thunk to "
                                             "non virtual covariant return construction in transaction clone "
                                             "initialization function TLS init wrapper string literal "
                                             "default arg cxx11 this requires _BitInt shim vtable closure dyn str mut "
                                             "extern crate impl isize usize i8 u8 i16 u16 i32 "
                                             "u32 i64 u64 i128 u128 f32 f64 ";

/// The text that a mangled name must hold for a word of the pattern; empty where nothing can be said. A whole
/// identifier has its length before it (`3Foo`), in Rust too, but for a first character of `_`. In a glob a word may be
/// a part of one.
std::string needle_of(std::string_view word, bool glob) {
    bool plain = std::all_of(word.begin(), word.end(),
                             [](char c) { return c != '$' && !(static_cast<unsigned char>(c) & 0x80U); });
    bool starts_with_digit = word[0] >= '0' && word[0] <= '9'; // a lambda's number, or the rest of a name
    if (!plain || starts_with_digit) return {};
    if (glob) return unmangled_words.find(word) == std::string_view::npos ? std::string(word) : std::string{};
    std::string whole = " " + std::string(word) + " ";
    if (unmangled_words.find(whole) != std::string_view::npos) return {};
    return (word[0] == '_' ? "" : std::to_string(word.size())) + std::string(word);
}

/// The needles that a pattern gives: of identifiers outside of brackets, since template arguments may be abbreviated.
/// `stop` is where the parameters begin.
std::vector<std::string> needles_of(std::string_view text, std::size_t stop, bool glob) {
    std::vector<std::string> needles;
    int depth = 0;
    for (std::size_t i = 0; i < std::min(stop, text.size());) {
        if (is_operator_word(text, i)) {
            i += operator_word.size() + operator_symbol(text, i + operator_word.size());
            // A conversion operator: its name is a type, which may be abbreviated.
            if (i < text.size() && text[i] == ' ') break;
            continue;
        }
        char c = text[i];
        if (c == '<' || c == '(' || c == '[' || c == '{') depth++;
        if (c == '>' || c == ')' || c == ']' || c == '}') depth--;
        if (!is_word(c)) {
            i += c == '\\' ? 2 : 1;
            continue;
        }
        std::size_t end = i;
        while (end < text.size() && is_word(text[end])) end++;
        std::string_view word = text.substr(i, end - i);
        std::string needle = depth == 0 ? needle_of(word, glob) : std::string{};
        if (!needle.empty()) needles.push_back(std::move(needle));
        i = end;
    }
    return needles;
}

constexpr std::string_view anonymous_namespace = "(anonymous namespace)::";

/// Users write a function of an anonymous namespace like a static one: by its name alone.
void erase_anonymous(std::string &name) {
    for (std::size_t at = 0; (at = name.find(anonymous_namespace, at)) != std::string::npos;)
        name.erase(at, anonymous_namespace.size());
}

/// `const T` as demangled names write it, `T const`, in the parameters and template arguments of a normal spelling.
std::string const_behind_type(std::string name) {
    constexpr std::string_view word = "const ";
    constexpr std::string_view openers = "(<,", ends = "*&,()[";
    for (std::size_t i = 0; i + 1 < name.size(); i++) {
        if (openers.find(name[i]) == std::string_view::npos) continue;
        if (!std::string_view(name).substr(i + 1).starts_with(word)) continue;
        name.erase(i + 1, word.size());
        int depth = 0;
        std::size_t end = i + 1;
        for (; end < name.size(); end++) {
            if (name[end] == '<') depth++;
            if (name[end] == '>' && depth-- == 0) break;
            if (depth == 0 && ends.find(name[end]) != std::string_view::npos) break;
        }
        name.insert(end, " const");
    }
    return name;
}

/// The signature without what follows its parameters (` const`, `&`).
std::string_view without_qualifiers(std::string_view signature) {
    std::size_t close = signature.rfind(')');
    return close == std::string_view::npos ? signature : signature.substr(0, close + 1);
}

} // namespace

bool is_operator_word(std::string_view name, std::size_t at) {
    if (!name.substr(at).starts_with(operator_word) || (at != 0 && is_word(name[at - 1]))) return false;
    std::size_t behind = at + operator_word.size();
    return behind == name.size() || !is_word(name[behind]);
}

std::size_t operator_symbol(std::string_view name, std::size_t at) {
    static constexpr std::array<std::string_view, 45> symbols{
        "<=>", "<<=", ">>=", "->*",  "()",     "[]",        "->",   "++",      "--",       "<<", ">>", "<=",
        ">=",  "==",  "!=",  "&&",   "||",     "+=",        "-=",   "*=",      "/=",       "%=", "^=", "&=",
        "|=",  "+",   "-",   "*",    "/",      "%",         "^",    "&",       "|",        "~",  "!",  "=",
        "<",   ">",   ",",   "\"\"", " new[]", " delete[]", " new", " delete", " co_await"};
    std::string_view rest = name.substr(std::min(at, name.size()));
    for (std::string_view symbol : symbols)
        if (rest.starts_with(symbol)) return symbol.size();
    return 0;
}

std::size_t parameter_list(std::string_view name) {
    int angles = 0;
    for (std::size_t i = 0; i < name.size(); i++) {
        if (is_operator_word(name, i)) {
            i += operator_word.size() + operator_symbol(name, i + operator_word.size()) - 1;
            continue;
        }
        char c = name[i];
        if (c == '<') angles++;
        if (c == '>') angles = std::max(0, angles - 1);
        if (c == '{') { // {lambda(int)#1}
            std::size_t close = name.find('}', i);
            if (close == std::string_view::npos) return close;
            i = close;
        }
        if (c != '(' || angles != 0) continue;
        constexpr std::string_view anonymous = "(anonymous namespace)";
        if (!name.substr(i).starts_with(anonymous)) return i;
        i += anonymous.size() - 1;
    }
    return std::string_view::npos;
}

std::string normal_spelling(std::string_view name) {
    std::string normal;
    normal.reserve(name.size());
    bool space = false;
    for (char c : name) {
        if (c == ' ' || c == '\t') {
            space = true;
            continue;
        }
        if (space && !normal.empty() && is_word(normal.back()) && is_word(c)) normal += ' ';
        space = false;
        if (c == '<' && normal.ends_with("::")) normal.resize(normal.size() - 2);
        normal += c;
    }
    return normal;
}

bool has_brackets(std::string_view name) { return name.ends_with(']') || name.find("[go.shape.") != name.npos; }

std::string without_brackets(std::string_view name) {
    std::string bare;
    int depth = 0;
    for (char c : name) {
        if (c == '[') depth++;
        if (depth == 0) bare += c;
        if (c == ']') depth--;
    }
    return bare;
}

std::string without_templates(std::string_view name) {
    std::string bare;
    int depth = 0;
    for (std::size_t i = 0; i < name.size(); i++) {
        if (depth == 0 && is_operator_word(name, i)) {
            std::size_t size = operator_word.size() + operator_symbol(name, i + operator_word.size());
            bare += name.substr(i, size);
            i += size - 1;
            continue;
        }
        char c = name[i];
        bool opens = c == '<' || (c == '[' && name.substr(i).starts_with("[abi:"));
        if (opens && !(i == 0 || bare.empty())) { // `<T as Trait>::f` (Rust) starts with one
            depth++;
        } else if (depth != 0 && (c == '>' || c == ']')) {
            if (!(c == '>' && name[i - 1] == '-')) depth--;
        } else if (depth != 0 && (c == '[')) {
            depth++;
        } else if (depth == 0) {
            bare += c;
        }
    }
    return bare;
}

NamePattern NamePattern::exact(std::string_view name) { return {name, false}; }
NamePattern NamePattern::glob(std::string_view pattern) { return {pattern, true}; }

NamePattern::NamePattern(std::string_view text, bool glob) : text_(text), glob_(glob) {
    normal_ = normal_spelling(const_behind_type(normal_spelling(text)));
    std::size_t parameters = parameter_list(normal_);
    parameters_ = parameters != std::string::npos;
    std::string_view name = std::string_view(normal_).substr(0, parameters);
    templates_ = without_templates(name) != name;
    needles_ = needles_of(normal_, std::min(parameters, normal_.find('.')), glob); // a clone's suffix is not mangled
    mangled_ = is_mangled(text);
    anonymous_ = normal_.find(anonymous_namespace) != std::string::npos;
}

bool NamePattern::matches(std::string_view name) const {
    std::size_t at = name.find('@');
    if (at != std::string_view::npos && at != 0) name = name.substr(0, at);
    if (name == text_) return true;
    if (!is_mangled(name)) return matches_plain(name);
    if (mangled_) return matches_plain(name);
    return may_match_mangled(name) && matches_demangled(name);
}

bool NamePattern::matches_plain(std::string_view name) const {
    if (has_brackets(name) && text_.find('[') == std::string::npos) return matches_plain(without_brackets(name));
    if (!glob_) {
        if (name == text_) return true;
        // A clone's name has the base name in front; most names are done with here.
        if (!name.starts_with(text_) || name.size() == text_.size() || name[text_.size()] != '.') return false;
        auto clone = split_clone(name);
        return clone.base == text_ && !clone.cold;
    }
    auto clone = split_clone(name);
    if (clone.cold) return false;
    return text::glob_match(text_, clone.base) || (!clone.suffix.empty() && text::glob_match(text_, name));
}

bool NamePattern::may_match_mangled(std::string_view mangled) const {
    // Rust's older names have the arguments of a type within its identifier: 13Pair$LT$T$GT$.
    const bool has_arguments_within = mangled.find('$') != std::string_view::npos;
    return std::all_of(needles_.begin(), needles_.end(), [&](std::string_view needle) {
        if (has_arguments_within) needle.remove_prefix(std::min(needle.find_first_not_of("0123456789"), needle.size()));
        return ::memmem(mangled.data(), mangled.size(), needle.data(), needle.size()) != nullptr;
    });
}

bool NamePattern::matches_demangled(std::string_view mangled) const {
    auto clone = split_clone(mangled);
    if (clone.cold) return false;
    auto name = demangle(clone.base, parameters_ ? Spelling::signature : Spelling::name);
    if (!name) return matches_plain(mangled);
    if (glob_) return text::glob_match(text_, *name) || text::glob_match(normal_, normal_spelling(*name));
    std::string normal = normal_spelling(*name);
    if (!anonymous_) erase_anonymous(normal);
    if (normal == normal_ || normal + std::string(clone.suffix) == normal_) return true;
    if (parameters_) return without_qualifiers(normal) == normal_;
    return !templates_ && without_templates(normal) == normal_;
}

} // namespace ktrace::symbols
