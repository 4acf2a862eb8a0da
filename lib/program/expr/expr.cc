// Parsing an EXPR: limits, literals, the words that mean something, and the way from a SyntaxError to an Error.
#include "program/expr/expr.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>

#include "base/text.h"
#include "program/expr/expr_builder.h"

namespace ktrace::program {

namespace grammar {
void parse(std::string_view text, Tree &tree); // expr.l
}

Error Tree::error(Error::Kind kind, TextRange range, std::string message, std::string hint) const {
    return Error{kind, std::move(message), std::move(hint), source, range.begin, std::max(1, range.end - range.begin)};
}

Result<Tree> parse_expr(std::string_view text) {
    Tree tree;
    tree.source = text;
    if (text.size() > Tree::max_length)
        return fail(tree.error(Error::Kind::usage, {static_cast<int>(Tree::max_length), static_cast<int>(text.size())},
                               "the expression is longer than 4096 bytes"));
    if (text::trim(text).empty()) return fail(tree.error(Error::Kind::usage, {0, 1}, "the expression is empty"));
    try {
        grammar::parse(text, tree);
    } catch (const SyntaxError &error) {
        return fail(tree.error(Error::Kind::usage, error.at, error.message, error.hint));
    }
    return tree;
}

namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// The byte of a numeric escape at `text[i]` (`x41`, `101`); moves i behind it.
char numeric_escape(std::string_view text, std::size_t &i) {
    unsigned value = 0;
    if (text[i] == 'x') {
        ++i;
        for (int n = 0; n < 2 && i < text.size() && hex_digit(text[i]) >= 0; ++n, ++i)
            value = value * 16 + static_cast<unsigned>(hex_digit(text[i]));
    } else {
        for (int n = 0; n < 3 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++n, ++i)
            value = value * 8 + static_cast<unsigned>(text[i] - '0');
    }
    return static_cast<char>(static_cast<unsigned char>(value));
}

} // namespace

std::string unescape(std::string_view quoted, TextRange at) {
    static constexpr std::string_view letters = "abefnrtv\\'\"?", bytes = "\a\b\x1b\f\n\r\t\v\\'\"?";
    std::string_view text = quoted.substr(1, quoted.size() - 2);
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        if (text[i] != '\\') {
            out += text[i++];
            continue;
        }
        ++i;
        std::size_t known = letters.find(text[i]);
        if (known != std::string_view::npos) {
            out += bytes[known];
            ++i;
        } else if (text[i] == 'x' || (text[i] >= '0' && text[i] <= '7')) {
            out += numeric_escape(text, i);
        } else {
            int column = at.begin + static_cast<int>(i);
            throw SyntaxError{{column, column + 2}, std::string("\\") + text[i] + " is no escape", {}};
        }
    }
    return out;
}

int ExprBuilder::add(Expr node) {
    int deepest = 0;
    for (int child : {node.a, node.b, node.c})
        if (child >= 0) deepest = std::max<int>(deepest, tree_.at(child).depth);
    if (deepest >= Tree::max_depth) throw SyntaxError{node.at, "the expression is nested too deeply", {}};
    node.depth = static_cast<std::uint16_t>(deepest + 1);
    tree_.nodes.push_back(std::move(node));
    return static_cast<int>(tree_.nodes.size()) - 1;
}

namespace {

/// C 6.4.4.1: the first of int, unsigned (not for plain decimals), long, unsigned long that holds the value.
void choose_integer_type(Expr &node, bool decimal, bool suffix_u, bool suffix_l) {
    std::uint64_t v = node.number;
    if (!suffix_l && !suffix_u && v <= 0x7fffffff) return;
    if (!suffix_l && (suffix_u || !decimal) && v <= 0xffffffff) {
        node.is_unsigned = true;
        return;
    }
    node.is_long = true;
    node.is_unsigned = suffix_u || v > 0x7fffffffffffffffU;
}

} // namespace

int ExprBuilder::integer(TextRange at, std::string_view word) {
    std::size_t end = word.size();
    bool hex = word.size() > 1 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
    while (end > 0 && std::string_view("uUlL").find(word[end - 1]) != std::string_view::npos) --end;
    std::string suffix(word.substr(end));
    for (char &c : suffix) c = c == 'U' ? 'u' : c == 'L' ? 'l' : c;
    static constexpr std::string_view suffixes[] = {"", "u", "l", "ul", "lu", "ll", "ull", "llu"};
    bool known = false;
    for (std::string_view s : suffixes) known = known || suffix == s;
    bool octal = !hex && end > 1 && word[0] == '0';
    std::string_view digits = word.substr(hex ? 2 : 0, end - (hex ? 2 : 0));
    Expr node;
    node.at = at;
    auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), node.number,
                                           hex     ? 16
                                           : octal ? 8
                                                   : 10);
    if (problem == std::errc::result_out_of_range) throw SyntaxError{at, "this number does not fit in 64 bits", {}};
    if (!known || problem != std::errc{} || stop != digits.data() + digits.size())
        throw SyntaxError{at, "`" + std::string(word) + "` is no number", {}};
    choose_integer_type(node, !hex && !octal, suffix.find('u') != std::string::npos,
                        suffix.find('l') != std::string::npos);
    return add(std::move(node));
}

int ExprBuilder::floating(TextRange at, std::string_view word) {
    Expr node;
    node.kind = Expr::Kind::floating;
    node.at = at;
    std::string_view digits = word;
    if (std::string_view("fFlL").find(digits.back()) != std::string_view::npos) digits.remove_suffix(1);
    auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), node.real);
    if (problem == std::errc::result_out_of_range) throw SyntaxError{at, "this number does not fit in a double", {}};
    if (problem != std::errc{} || stop != digits.data() + digits.size())
        throw SyntaxError{at, "`" + std::string(word) + "` is no number", {}};
    node.is_single = word.back() == 'f' || word.back() == 'F';
    if (node.is_single) node.real = static_cast<double>(static_cast<float>(node.real));
    return add(std::move(node));
}

int ExprBuilder::time(TextRange at, std::string_view word) {
    const auto ns = text::parse_duration(word);
    if (!ns) throw SyntaxError{at, "this time does not fit in 64 bits", {}};
    Expr node;
    node.at = at;
    node.number = *ns;
    node.is_long = true;
    return add(std::move(node));
}

int ExprBuilder::character(TextRange at, std::string_view quoted) {
    std::string bytes = unescape(quoted, at);
    if (bytes.size() != 1) throw SyntaxError{at, "a character literal is one byte", "double quotes make a string"};
    Expr node;
    node.at = at;
    // Plain char is signed or not by the psABI; the traced program's is that of this build.
    node.number = static_cast<std::uint64_t>(std::int64_t{bytes[0]});
    return add(std::move(node));
}

int ExprBuilder::text(TextRange at, std::string_view quoted) {
    Expr node;
    node.kind = Expr::Kind::text;
    node.at = at;
    node.text = unescape(quoted, at);
    return add(std::move(node));
}

namespace {

struct Word {
    std::string_view name;
    Expr::Kind kind;
};
constexpr Word words[] = {
    {"retval", Expr::Kind::retval},      {"tid", Expr::Kind::tid},       {"pid", Expr::Kind::pid},
    {"comm", Expr::Kind::comm},          {"nsecs", Expr::Kind::nsecs},   {"func", Expr::Kind::func},
    {"stack", Expr::Kind::stack},        {"ustack", Expr::Kind::stack},  {"duration", Expr::Kind::duration},
    {"errno", Expr::Kind::error_number}, {"caller", Expr::Kind::caller},
};

bool is_integer_arg(std::string_view name) {
    return name.size() == 4 && name.substr(0, 3) == "arg" && name[3] >= '0' && name[3] <= '9';
}

} // namespace

std::vector<std::string_view> words_of_expr() {
    std::vector<std::string_view> names;
    for (const Word &word : words) names.push_back(word.name);
    return names;
}

int ExprBuilder::name(TextRange at, std::string_view name) {
    Expr node;
    node.kind = Expr::Kind::name;
    node.at = at;
    node.text = name;
    for (const Word &word : words)
        if (word.name == name) node.kind = word.kind;
    if (is_integer_arg(name)) {
        node.kind = Expr::Kind::integer_arg;
        node.number = static_cast<std::uint64_t>(name[3] - '0');
    }
    return add(std::move(node));
}

namespace {

constexpr std::uint64_t most_frames = 127;

SyntaxError no_function(std::string_view name, TextRange at) {
    return {
        at, "there is no function `" + std::string(name) + "` here",
        "the functions are reg(\"NAME\"), str(POINTER[, LENGTH]), buf(POINTER, LENGTH), stack(FRAMES), usym(ADDRESS) "
        "and sizeof(TYPE or EXPR)"};
}

} // namespace

int ExprBuilder::call(TextRange at, std::string_view name, TextRange name_at, const std::vector<int> &arguments) {
    Expr node;
    node.at = at;
    auto takes = [&](std::size_t least, std::size_t most, const char *usage) {
        if (arguments.size() < least || arguments.size() > most)
            throw SyntaxError{at, std::string(name) + " takes other arguments", std::string("write ") + usage};
    };
    if (name == "reg") {
        takes(1, 1, "reg(\"ax\")");
        const Expr &which = tree_.at(arguments[0]);
        if (which.kind != Expr::Kind::text)
            throw SyntaxError{which.at, "reg takes the name of a register in quotes", "write reg(\"ax\")"};
        node.kind = Expr::Kind::reg;
        node.text = which.text;
        return add(std::move(node));
    }
    if (name == "stack" || name == "ustack") {
        takes(1, 1, "stack(5)");
        const Expr &frames = tree_.at(arguments[0]);
        if (frames.kind != Expr::Kind::integer || frames.number < 1 || frames.number > most_frames)
            throw SyntaxError{frames.at, "stack takes a number of frames, from 1 to 127", "write stack(5)"};
        node.kind = Expr::Kind::stack;
        node.number = frames.number;
        return add(std::move(node));
    }
    if (name == "usym") {
        takes(1, 1, "usym(ADDRESS)");
        node.kind = Expr::Kind::usym;
    } else if (name == "str") {
        takes(1, 2, "str(POINTER) or str(POINTER, LENGTH)");
        node.kind = Expr::Kind::str;
    } else if (name == "buf") {
        takes(2, 2, "buf(POINTER, LENGTH)");
        node.kind = Expr::Kind::buf;
    } else if (name == "sizeof") {
        takes(1, 1, "sizeof(TYPE) or sizeof(EXPR)");
        node.kind = Expr::Kind::size_of;
    } else {
        throw no_function(name, name_at);
    }
    node.a = arguments[0];
    if (arguments.size() > 1) node.b = arguments[1];
    return add(std::move(node));
}

int ExprBuilder::unary(TextRange at, Expr::Op op, int a) {
    Expr node;
    node.kind = Expr::Kind::unary;
    node.at = at;
    node.op = op;
    node.a = a;
    return add(std::move(node));
}

namespace {

/// A plain number: a literal without the suffix u, or its negative.
std::optional<std::int64_t> plain_number(const Tree &tree, const Expr &e) {
    bool negated = e.kind == Expr::Kind::unary && e.op == Expr::Op::minus;
    const Expr &literal = negated ? tree.at(e.a) : e;
    if (literal.kind != Expr::Kind::integer || literal.is_unsigned) return {};
    auto number = static_cast<std::int64_t>(literal.number);
    if (negated && __builtin_sub_overflow(std::int64_t{0}, number, &number)) return {};
    return number;
}

/// left << right in 64 bits; none where bits are lost.
std::optional<std::uint64_t> shifted(std::int64_t left, std::int64_t right) {
    if (left < 0 || right < 0 || right > 63) return {};
    std::uint64_t result = static_cast<std::uint64_t>(left) << right;
    if (result >> right != static_cast<std::uint64_t>(left)) return {};
    return result;
}

std::optional<std::uint64_t> calculated(Expr::Op op, std::int64_t left, std::int64_t right) {
    std::int64_t result = 0;
    if (op == Expr::Op::shl) return shifted(left, right);
    bool lost = op == Expr::Op::add   ? __builtin_add_overflow(left, right, &result)
                : op == Expr::Op::sub ? __builtin_sub_overflow(left, right, &result)
                : op == Expr::Op::mul ? __builtin_mul_overflow(left, right, &result)
                                      : true;
    if (lost) return {};
    return static_cast<std::uint64_t>(result);
}

/// 10 * 1000 * 1000 * 1000 and 1 << 40 are what they are in bpftrace. C has them overflow an int, which it leaves
/// undefined, and a filter by that would be wrong in silence. A value that fits has the type that it has in C.
std::optional<Expr> calculate(const Tree &tree, TextRange at, Expr::Op op, const Expr &left, const Expr &right) {
    auto first = plain_number(tree, left), second = plain_number(tree, right);
    auto result = first && second ? calculated(op, *first, *second) : std::nullopt;
    if (!result) return {};
    auto number = static_cast<std::int64_t>(*result);
    Expr node;
    node.at = at;
    node.number = *result;
    node.is_long = left.is_long || right.is_long || number != static_cast<std::int32_t>(number);
    node.is_unsigned = op == Expr::Op::shl && number < 0; // its highest bit
    return node;
}

} // namespace

int ExprBuilder::binary(TextRange at, Expr::Op op, int a, int b) {
    if (auto number = calculate(tree_, at, op, tree_.at(a), tree_.at(b))) return add(std::move(*number));
    Expr node;
    node.kind = Expr::Kind::binary;
    node.at = at;
    node.op = op;
    node.a = a;
    node.b = b;
    return add(std::move(node));
}

int ExprBuilder::conditional(TextRange at, int a, int b, int c) {
    Expr node;
    node.kind = Expr::Kind::conditional;
    node.at = at;
    node.a = a;
    node.b = b;
    node.c = c;
    return add(std::move(node));
}

int ExprBuilder::member(TextRange at, int a, bool arrow, std::string_view name) {
    Expr node;
    node.at = at;
    node.text = name;
    const Expr &object = tree_.at(a);
    bool bare = object.kind == Expr::Kind::name;
    if (bare && object.text == "args") {
        node.kind = Expr::Kind::arg;
    } else if (bare && object.text == "var" && !arrow) {
        node.kind = Expr::Kind::var;
    } else {
        node.kind = Expr::Kind::member;
        node.arrow = arrow;
        node.a = a;
    }
    return add(std::move(node));
}

int ExprBuilder::index(TextRange at, int a, int b) {
    Expr node;
    node.kind = Expr::Kind::index;
    node.at = at;
    node.a = a;
    node.b = b;
    return add(std::move(node));
}

namespace {

/// `( const struct  foo * )` → {"struct foo", 1}
TypeName type_name(std::string_view parenthesized) {
    TypeName type;
    std::string word;
    auto end_word = [&] {
        if (!word.empty() && word != "const" && word != "volatile") type.name += (type.name.empty() ? "" : " ") + word;
        word.clear();
    };
    for (char c : parenthesized.substr(1, parenthesized.size() - 2)) {
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            end_word();
        } else if (c == '*') {
            end_word();
            ++type.stars;
        } else {
            word += c;
        }
    }
    end_word();
    return type;
}

} // namespace

int ExprBuilder::cast(TextRange at, std::string_view parenthesized, int a) {
    Expr node;
    node.kind = Expr::Kind::cast;
    node.at = at;
    node.type = type_name(parenthesized);
    node.a = a;
    return add(std::move(node));
}

int ExprBuilder::size_of(TextRange at, std::string_view name, TextRange name_at, std::string_view parenthesized) {
    if (name != "sizeof") throw no_function(name, name_at);
    Expr node;
    node.kind = Expr::Kind::size_of;
    node.at = at;
    node.type = type_name(parenthesized);
    return add(std::move(node));
}

} // namespace ktrace::program
