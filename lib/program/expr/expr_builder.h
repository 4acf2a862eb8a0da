// ExprBuilder: what the grammar (expr.y) and the scanner (expr.l) build a Tree with. Private to the parser.
//
// Invariants: a node is added only whole, and never one deeper than Tree::max_depth: add() throws SyntaxError, which
// the generated parser turns into its error. Exceptions end in parse_expr.
#pragma once

#include <string>
#include <string_view>

#include "program/expr/expr.h"

namespace ktrace::program {

/// A syntax error on its way out of the scanner or an action.
struct SyntaxError {
    TextRange at;
    std::string message;
    std::string hint;
};

class ExprBuilder {
  public:
    explicit ExprBuilder(Tree &tree) : tree_(tree) {}

    int integer(TextRange at, std::string_view digits); // decimal, 0x, 0 octal; suffixes u, l, ll
    int floating(TextRange at, std::string_view digits);
    int time(TextRange at, std::string_view word); // 100us, 1.5ms: in ns
    int character(TextRange at, std::string_view quoted);
    int text(TextRange at, std::string_view quoted);
    int name(TextRange at, std::string_view name); // also argN, retval, tid, …
    int call(TextRange at, std::string_view name, TextRange name_at, const std::vector<int> &arguments);
    int unary(TextRange at, Expr::Op op, int a);
    int binary(TextRange at, Expr::Op op, int a, int b);
    int conditional(TextRange at, int a, int b, int c);
    int member(TextRange at, int a, bool arrow, std::string_view name);
    int index(TextRange at, int a, int b);
    int cast(TextRange at, std::string_view parenthesized, int a);
    int size_of(TextRange at, std::string_view name, TextRange name_at, std::string_view parenthesized);
    void root(int node) { tree_.root = node; }

  private:
    int add(Expr node);

    Tree &tree_;
};

/// The bytes between the quotes of a character or string literal, escapes resolved as in C.
std::string unescape(std::string_view quoted, TextRange at);

} // namespace ktrace::program
