// NamePattern: what a user calls a function, and which symbols that means: plain names, demangled ones with and without
// parameters, clones of them, globs.
//
// Invariants: a pattern never matches the cold part of a function unless it is spelled out; a name is demangled only if
// the identifiers of the pattern occur in its mangled form, so that a pass over a large library demangles next to
// nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ktrace::symbols {

class NamePattern {
  public:
    /// The function with exactly this name: `do_work`, `_Z3fooi`, `Foo::bar`, `Foo::bar(int*)`, `foo<int>`, and `foo`
    /// for all foo<…>; also its clones (do_work.constprop.0).
    static NamePattern exact(std::string_view name);
    /// All functions whose name (demangled, without parameters unless the pattern has a parenthesis) the glob matches.
    static NamePattern glob(std::string_view pattern);

    /// `name` is a symbol's, as it is in the file, perhaps with `@VERSION` behind it.
    bool matches(std::string_view name) const;
    const std::string &text() const { return text_; }
    bool is_glob() const { return glob_; }

  private:
    NamePattern(std::string_view text, bool glob);
    bool may_match_mangled(std::string_view mangled) const;
    bool matches_plain(std::string_view name) const;
    bool matches_demangled(std::string_view mangled) const;

    std::string text_;
    std::string normal_; // text_ with spaces only where they part two words
    bool glob_ = false;
    bool parameters_ = false;          // text_ has a parameter list
    bool templates_ = false;           // text_ names template arguments or ABI tags
    bool anonymous_ = false;           // text_ names anonymous namespaces
    bool mangled_ = false;             // text_ is spelled as in the file
    std::vector<std::string> needles_; // identifiers that a mangled name must hold
};

/// `name` with spaces only between two words (`unsigned int`), and without the `::` in front of Rust's arguments
/// (`f::<i32>`), so that spellings compare.
std::string normal_spelling(std::string_view name);
/// True where a name has arguments of a generic function in brackets: `main.Each[go.shape.int_0]` (Go).
bool has_brackets(std::string_view name);
/// Such a name without them.
std::string without_brackets(std::string_view name);
/// A demangled name without template arguments and ABI tags: foo<int>::bar[abi:cxx11] → foo::bar.
std::string without_templates(std::string_view name);
/// Where the parameter list of a demangled name starts, npos where it has none: not the parentheses of `operator()`, of
/// `(anonymous namespace)` and of template arguments.
std::size_t parameter_list(std::string_view name);
/// The number of characters of the operator's symbol that starts at `at` (behind the word `operator`): `<<=`, `()`,
/// `->*`; 0 where there is none (`operator bool`).
std::size_t operator_symbol(std::string_view name, std::size_t at);
/// True where `operator` stands at `at` as a word of its own.
bool is_operator_word(std::string_view name, std::size_t at);

} // namespace ktrace::symbols
