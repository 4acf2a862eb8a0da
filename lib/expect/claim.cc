#include "expect/claim.h"

#include <algorithm>

#include "base/text.h"

namespace ktrace::expect {

namespace {

using program::Expr;
using program::Tree;

constexpr std::string_view figure_names = "count, count(EXPR), total, self, avg, min, max and p1 to p99";

tl::unexpected<Error> wrong(std::string_view given, std::size_t at, std::size_t width, std::string message,
                            std::string hint = {}) {
    return fail(Error(Error::Kind::usage, std::move(message), std::move(hint), std::string(given), static_cast<int>(at),
                      static_cast<int>(std::max<std::size_t>(width, 1))));
}

/// `error` of a part of the text that begins at `at`.
tl::unexpected<Error> pointing(Error error, std::string_view given, std::size_t at) {
    error.source = given;
    error.column = static_cast<int>(at) + std::max(error.column, 0);
    return fail(std::move(error));
}

/// Behind the `)` of the `(` at `open`; npos: it has none.
std::size_t end_of_brackets(std::string_view text, std::size_t open) {
    int depth = 0;
    bool in_string = false;
    for (std::size_t at = open; at < text.size(); at++) {
        if (in_string && text[at] == '\\') {
            at++;
            continue;
        }
        if (text[at] == '"') in_string = !in_string;
        if (in_string) continue;
        if (text[at] == '(') depth++;
        if (text[at] == ')' && --depth == 0) return at + 1;
    }
    return text.npos;
}

bool is_of_name(char letter) {
    return std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.").find(letter) !=
           std::string_view::npos;
}

/// Where the `(` of `word(` is, at `at` of the text; npos: this is something else.
std::size_t bracket_behind(std::string_view text, std::size_t at, std::string_view word) {
    if (text.substr(at, word.size()) != word || (at > 0 && is_of_name(text[at - 1]))) return text.npos;
    const std::size_t open = text.find_first_not_of(" \t", at + word.size());
    return open < text.size() && text[open] == '(' ? open : text.npos;
}

/// Reads one expectation.
class Reader {
  public:
    Reader(std::string_view given, Runs runs) : given_(given), runs_(runs) { claim_.given = given; }

    Result<Claim> read() {
        take_whose();
        at_ = std::min(given_.find_first_not_of(" \t", at_), given_.size());
        claim_.text = text::trim(given_.substr(at_));
        if (claim_.text.empty())
            return wrong(given_, at_, 1, "an expectation needs a claim", "for example count <= 100 or p99 < 10ms");
        Status done;
        if (!take_order("before", Claim::Kind::before) && !take_order("then", Claim::Kind::then)) {
            const bool of_each = bracket_behind(given_, at_, "each") != given_.npos;
            const bool of_none = bracket_behind(given_, at_, "never") != given_.npos;
            done = of_each   ? take_values("each", Claim::Kind::each)
                   : of_none ? take_values("never", Claim::Kind::never)
                             : take_figures();
        }
        if (!done) return fail(done.error());
        return std::move(claim_);
    }

  private:
    /// Up to the first colon that a blank follows and none precedes.
    void take_whose() {
        for (std::size_t at = 1; at + 1 < given_.size(); at++)
            if (given_[at] == ':' && given_[at + 1] == ' ' && given_[at - 1] != ' ') {
                claim_.whose = text::trim(given_.substr(0, at));
                at_ = at + 1;
                return;
            }
    }

    bool take_order(std::string_view word, Claim::Kind kind) {
        const std::string marked = ' ' + std::string(word) + ' ';
        const std::size_t found = given_.find(marked, at_);
        if (found == given_.npos) return false;
        claim_.kind = kind;
        claim_.first = text::trim(given_.substr(at_, found - at_));
        claim_.second = text::trim(given_.substr(found + marked.size()));
        return !claim_.first.empty() && !claim_.second.empty();
    }

    Status take_values(std::string_view word, Claim::Kind kind) {
        const std::size_t open = bracket_behind(given_, at_, word), end = end_of_brackets(given_, open);
        if (end == given_.npos) return wrong(given_, open, 1, "this ( is never closed");
        if (const std::size_t rest = given_.find_first_not_of(" \t", end); rest != given_.npos)
            return wrong(given_, rest, given_.size() - rest, std::string(word) + "(EXPR) stands alone",
                         "give another --expect");
        claim_.kind = kind;
        auto expression = take_expression(open, end);
        if (!expression) return fail(expression.error());
        claim_.of = *expression;
        return {};
    }

    /// The EXPR in the brackets that end before `end`.
    Result<std::string> take_expression(std::size_t open, std::size_t end) {
        const std::string inner(text::trim(given_.substr(open + 1, end - open - 2)));
        if (inner.empty()) return wrong(given_, open, end - open, "an expression is missing here");
        auto tree = program::parse_expr(inner);
        if (!tree) return pointing(tree.error(), given_, given_.find(inner, open));
        return inner;
    }

    Status take_figures() {
        std::string plain(given_.substr(at_)); // with names in place of count(EXPR)
        for (std::size_t at = 0; at < plain.size(); at++) {
            const std::size_t open = bracket_behind(plain, at, "count");
            if (open == plain.npos) continue;
            const std::size_t end = end_of_brackets(plain, open);
            if (end == plain.npos) return wrong(given_, at_ + open, 1, "this ( is never closed");
            auto expression = take_expression(at_ + open, at_ + end);
            if (!expression) return fail(expression.error());
            std::string name = "count_" + std::to_string(counted_.size());
            if (name.size() > end - at) return wrong(given_, at_ + at, end - at, "there are too many of these");
            name.resize(end - at, '_');
            plain.replace(at, end - at, name);
            counted_.emplace_back(std::move(name), *expression);
        }
        auto tree = program::parse_expr(plain);
        if (!tree) return pointing(tree.error(), given_, at_);
        claim_.tree = std::move(*tree);
        if (auto checked = check(claim_.tree.root); !checked) return checked;
        return check_claims();
    }

    Status check_claims() const {
        const Expr &root = claim_.tree.at(claim_.tree.root);
        static constexpr Expr::Op claiming[] = {Expr::Op::lt,          Expr::Op::le,         Expr::Op::gt,
                                                Expr::Op::ge,          Expr::Op::eq,         Expr::Op::ne,
                                                Expr::Op::logical_and, Expr::Op::logical_or, Expr::Op::logical_not};
        if (claim_.figures.empty())
            return wrong(given_, at_, claim_.text.size(), "there is no figure in this claim",
                         "the figures are " + std::string(figure_names));
        if (root.kind == Expr::Kind::conditional ||
            std::find(std::begin(claiming), std::end(claiming), root.op) != std::end(claiming))
            return {};
        return wrong(given_, at_, claim_.text.size(), "this claims nothing", "compare it, as in p99 < 10ms");
    }

    Status check(int number) {
        const Expr node = claim_.tree.at(number);
        switch (node.kind) {
        case Expr::Kind::integer:
        case Expr::Kind::floating: return {};
        case Expr::Kind::name: return take_figure(node, node.text, {});
        case Expr::Kind::member:
            if (runs_ == Runs::two && !node.arrow && claim_.tree.at(node.a).text == "old")
                return take_figure(node, node.text, "old.");
            break;
        case Expr::Kind::unary:
            if (node.op == Expr::Op::minus || node.op == Expr::Op::plus || node.op == Expr::Op::logical_not)
                return check(node.a);
            break;
        case Expr::Kind::conditional: return check_all({node.a, node.b, node.c});
        case Expr::Kind::binary:
            if (!is_of_integers(node.op)) return check_all({node.a, node.b});
            break;
        default: break;
        }
        return not_here(node);
    }

    Status check_all(std::initializer_list<int> nodes) {
        for (int node : nodes)
            if (auto checked = check(node); !checked) return checked;
        return {};
    }

    static bool is_of_integers(Expr::Op op) {
        static constexpr Expr::Op bits[] = {Expr::Op::mod,     Expr::Op::shl,     Expr::Op::shr,
                                            Expr::Op::bit_and, Expr::Op::bit_xor, Expr::Op::bit_or};
        return std::find(std::begin(bits), std::end(bits), op) != std::end(bits);
    }

    Status not_here(const Expr &node) const {
        return wrong(given_, at_ + static_cast<std::size_t>(node.at.begin),
                     static_cast<std::size_t>(node.at.end - node.at.begin), "this is no figure",
                     "the figures are " + std::string(figure_names) +
                         "; values go into each(EXPR), never(EXPR) and "
                         "count(EXPR)");
    }

    Status take_figure(const Expr &node, const std::string &name, const std::string &run) {
        static constexpr std::string_view plain[] = {"count", "total", "self", "avg", "min", "max"};
        std::string figure = run + name;
        auto counted =
            std::find_if(counted_.begin(), counted_.end(), [&](const auto &each) { return each.first == name; });
        if (counted != counted_.end()) {
            if (runs_ == Runs::two)
                return wrong(given_, at_ + static_cast<std::size_t>(node.at.begin), name.size(),
                             "the files have no count of these", "count is that of all");
            claim_.counted.push_back(counted->second);
            figure = "count(" + counted->second + ")";
        } else if (std::find(std::begin(plain), std::end(plain), name) == std::end(plain) && percentile_of(name) == 0) {
            return not_here(node);
        }
        claim_.figures.push_back(figure);
        claim_.stand_in.push_back(run + name);
        return {};
    }

    const std::string_view given_;
    const Runs runs_;
    Claim claim_;
    std::size_t at_ = 0;                                       // of the claim
    std::vector<std::pair<std::string, std::string>> counted_; // names and EXPRs
};

} // namespace

std::string_view base_of(std::string_view figure) { return figure.starts_with("old.") ? figure.substr(4) : figure; }

int percentile_of(std::string_view figure) {
    if (figure.size() < 2 || figure.size() > 3 || figure[0] != 'p' || figure[1] == '0') return 0;
    const auto number = text::parse_u64(figure.substr(1));
    return number && *number <= 99 ? static_cast<int>(*number) : 0;
}

bool Claim::wants_values() const {
    return std::any_of(figures.begin(), figures.end(),
                       [](const std::string &figure) { return !base_of(figure).starts_with("count"); });
}

Result<Claim> parse_claim(std::string_view given, Runs runs) { return Reader(given, runs).read(); }

} // namespace ktrace::expect
