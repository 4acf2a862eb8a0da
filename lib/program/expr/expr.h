// Expr: the syntax of EXPR, as a tree. Syntax only: what a name means at a location is analysis' business (lower.h).
//
// Invariants: nodes refer to earlier nodes of the same tree by index, so a tree is walked and destroyed without
// recursion; a tree is no deeper than max_depth and a text no longer than max_length, so walkers may recurse. Every
// node knows its columns in the text, for errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ktrace::program {

/// A part of an EXPR's text: bytes [begin, end).
struct TextRange {
    int begin = 0, end = 0;
};

/// The name of a type in a cast, as written: `unsigned long`, `struct foo`, `char` with one star.
struct TypeName {
    std::string name; // without qualifiers and stars, words separated by one space
    int stars = 0;
};

struct Expr {
    enum class Kind : std::uint8_t {
        integer,     // number, is_unsigned, is_long
        floating,    // real, is_single
        text,        // text: a string literal's bytes
        name,        // text: a bare name: parameter, variable, enumerator
        integer_arg, // number: argN
        arg,         // text: args.NAME
        var,         // text: var.NAME
        retval,
        error_number, // errno
        tid,
        pid,
        comm,
        nsecs,
        func,
        duration,
        stack,       // number: of frames; 0: all
        caller,      // the function that called this one
        usym,        // a: an address, shown by its name
        reg,         // text: reg("NAME")
        str,         // a: pointer; b: length or -1
        buf,         // a: pointer; b: length
        unary,       // op, a
        binary,      // op, a, b
        conditional, // a ? b : c
        member,      // a, text; arrow
        index,       // a[b]
        cast,        // type, a
        size_of,     // type, or a where the type has no name
    };
    enum class Op : std::uint8_t {
        none,
        plus,
        minus,
        bit_not,
        logical_not,
        deref,
        address_of,
        mul,
        div,
        mod,
        add,
        sub,
        shl,
        shr,
        lt,
        le,
        gt,
        ge,
        eq,
        ne,
        bit_and,
        bit_xor,
        bit_or,
        logical_and,
        logical_or,
    };

    Kind kind = Kind::integer;
    Op op = Op::none;
    bool is_unsigned = false, is_long = false; // integer
    bool is_single = false;                    // floating: a float, not a double
    bool arrow = false;                        // member
    std::uint16_t depth = 1;
    int a = -1, b = -1, c = -1;
    std::uint64_t number = 0;
    double real = 0;
    std::string text;
    TypeName type;
    TextRange at; // all of this sub-expression
};

/// A parsed EXPR.
struct Tree {
    static constexpr std::size_t max_length = 4096; // bytes of text
    static constexpr int max_depth = 100;

    std::string source;
    std::vector<Expr> nodes;
    int root = -1;

    const Expr &at(int node) const { return nodes[static_cast<std::size_t>(node)]; }
    /// An error that points at `range` of this text.
    Error error(Error::Kind kind, TextRange range, std::string message, std::string hint = {}) const;
};

/// Parses one EXPR (product.md, section 1). Error: usage, with source, column and width.
Result<Tree> parse_expr(std::string_view text);

/// The bare names that mean the same in every program: duration, tid and their like; arg0 to arg9 are not among them.
std::vector<std::string_view> words_of_expr();

} // namespace ktrace::program
