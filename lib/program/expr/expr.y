// The grammar of EXPR (product.md, section 1): C's expressions without assignment, comma and general calls.
%require "3.8"
%language "c++"
%skeleton "lalr1.cc"
%define api.namespace {ktrace::program::grammar}
%define api.parser.class {Parser}
%define api.token.constructor
%define api.token.raw
%define api.value.type variant
%define api.location.type {ktrace::program::TextRange}
%define parse.error custom
%locations
%param { void *scanner }
%parse-param { ktrace::program::ExprBuilder &build }

%code requires {
#include <string>
#include <vector>

#include "program/expr/expr_builder.h"

#define YYLLOC_DEFAULT(Current, Rhs, N)                                                                                \
    do {                                                                                                               \
        if (N) {                                                                                                       \
            (Current).begin = YYRHSLOC(Rhs, 1).begin;                                                                  \
            (Current).end = YYRHSLOC(Rhs, N).end;                                                                      \
        } else                                                                                                         \
            (Current).begin = (Current).end = YYRHSLOC(Rhs, 0).end;                                                    \
    } while (0)
}

%code {
namespace ktrace::program::grammar {
Parser::symbol_type scan(void *scanner);
}
#define yylex scan
using Op = ktrace::program::Expr::Op;
}

%token END 0
%token <std::string> NAME INTEGER FLOATING TIME CHARACTER TEXT CAST
%token LPAREN "(" RPAREN ")" LBRACKET "[" RBRACKET "]" DOT "." ARROW "->" COMMA "," QUESTION "?" COLON ":"
%token OROR "||" ANDAND "&&" OR "|" XOR "^" AND "&" EQ "==" NE "!=" LT "<" LE "<=" GT ">" GE ">="
%token SHL "<<" SHR ">>" PLUS "+" MINUS "-" STAR "*" SLASH "/" PERCENT "%" NOT "!" TILDE "~"

%right "?" ":"
%left "||"
%left "&&"
%left "|"
%left "^"
%left "&"
%left "==" "!="
%left "<" "<=" ">" ">="
%left "<<" ">>"
%left "+" "-"
%left "*" "/" "%"
%precedence UNARY

%type <int> expr postfix
%type <std::vector<int>> arguments

%%

whole: expr { build.root($1); }
;

expr: postfix
| expr "?" expr ":" expr { $$ = build.conditional(@$, $1, $3, $5); }
| expr "||" expr { $$ = build.binary(@$, Op::logical_or, $1, $3); }
| expr "&&" expr { $$ = build.binary(@$, Op::logical_and, $1, $3); }
| expr "|" expr { $$ = build.binary(@$, Op::bit_or, $1, $3); }
| expr "^" expr { $$ = build.binary(@$, Op::bit_xor, $1, $3); }
| expr "&" expr { $$ = build.binary(@$, Op::bit_and, $1, $3); }
| expr "==" expr { $$ = build.binary(@$, Op::eq, $1, $3); }
| expr "!=" expr { $$ = build.binary(@$, Op::ne, $1, $3); }
| expr "<" expr { $$ = build.binary(@$, Op::lt, $1, $3); }
| expr "<=" expr { $$ = build.binary(@$, Op::le, $1, $3); }
| expr ">" expr { $$ = build.binary(@$, Op::gt, $1, $3); }
| expr ">=" expr { $$ = build.binary(@$, Op::ge, $1, $3); }
| expr "<<" expr { $$ = build.binary(@$, Op::shl, $1, $3); }
| expr ">>" expr { $$ = build.binary(@$, Op::shr, $1, $3); }
| expr "+" expr { $$ = build.binary(@$, Op::add, $1, $3); }
| expr "-" expr { $$ = build.binary(@$, Op::sub, $1, $3); }
| expr "*" expr { $$ = build.binary(@$, Op::mul, $1, $3); }
| expr "/" expr { $$ = build.binary(@$, Op::div, $1, $3); }
| expr "%" expr { $$ = build.binary(@$, Op::mod, $1, $3); }
| "+" expr %prec UNARY { $$ = build.unary(@$, Op::plus, $2); }
| "-" expr %prec UNARY { $$ = build.unary(@$, Op::minus, $2); }
| "!" expr %prec UNARY { $$ = build.unary(@$, Op::logical_not, $2); }
| "~" expr %prec UNARY { $$ = build.unary(@$, Op::bit_not, $2); }
| "*" expr %prec UNARY { $$ = build.unary(@$, Op::deref, $2); }
| "&" expr %prec UNARY { $$ = build.unary(@$, Op::address_of, $2); }
| CAST expr %prec UNARY { $$ = build.cast(@$, $1, $2); }
;

postfix: NAME { $$ = build.name(@$, $1); }
| INTEGER { $$ = build.integer(@$, $1); }
| TIME { $$ = build.time(@$, $1); }
| FLOATING { $$ = build.floating(@$, $1); }
| CHARACTER { $$ = build.character(@$, $1); }
| TEXT { $$ = build.text(@$, $1); }
| "(" expr ")" { $$ = $2; }
| NAME "(" arguments ")" { $$ = build.call(@$, $1, @1, $3); }
| NAME CAST { $$ = build.size_of(@$, $1, @1, $2); }
| postfix "." NAME { $$ = build.member(@$, $1, false, $3); }
| postfix "->" NAME { $$ = build.member(@$, $1, true, $3); }
| postfix "[" expr "]" { $$ = build.index(@$, $1, $3); }
;

arguments: expr { $$ = std::vector<int>{$1}; }
| arguments "," expr { $$ = std::move($1); $$.push_back($3); }
;

%%

namespace ktrace::program::grammar {

namespace {

bool expects(const Parser::context &context, Parser::symbol_kind_type wanted) {
    Parser::symbol_kind_type kinds[64];
    int count = context.expected_tokens(kinds, 64);
    for (int i = 0; i < count; ++i)
        if (kinds[i] == wanted) return true;
    return false;
}

std::string wanted_here(const Parser::context &context) {
    using S = Parser::symbol_kind;
    if (expects(context, S::S_INTEGER)) return "a value";
    bool closes = expects(context, S::S_RPAREN);
    if (expects(context, S::S_RBRACKET)) return "a closing ]";
    if (closes) return "a closing )";
    if (expects(context, S::S_COLON)) return "the : of this ?";
    if (expects(context, S::S_STAR) || expects(context, S::S_YYEOF)) return "an operator";
    if (expects(context, S::S_NAME)) return "a member's name";
    return "something else";
}

} // namespace

void Parser::report_syntax_error(const context &context) const {
    std::string wanted = wanted_here(context);
    bool ended = context.token() == symbol_kind::S_YYEOF || context.token() == symbol_kind::S_YYEMPTY;
    throw SyntaxError{context.location(),
                      ended ? "the expression ends where " + wanted + " should be"
                            : "here should be " + wanted,
                      {}};
}

void Parser::error(const TextRange &at, const std::string &message) { throw SyntaxError{at, message, {}}; }

} // namespace ktrace::program::grammar
