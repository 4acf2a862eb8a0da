#include "expect/judge.h"

#include <algorithm>

namespace ktrace::expect {

namespace {

using program::Expr;
using program::Tree;

class Evaluation {
  public:
    Evaluation(const Claim &claim, const Figures &figures) : claim_(claim), figures_(figures) {}

    double of(int number) const {
        const Expr &node = claim_.tree.at(number);
        switch (node.kind) {
        case Expr::Kind::integer: return static_cast<double>(node.number);
        case Expr::Kind::floating: return node.real;
        case Expr::Kind::name: return figure(node.text);
        case Expr::Kind::member: return figure("old." + node.text);
        case Expr::Kind::conditional: return of(of(node.a) != 0 ? node.b : node.c);
        case Expr::Kind::unary: return unary(node);
        default: return binary(node);
        }
    }

  private:
    double figure(const std::string &name) const {
        const auto at = std::find(claim_.stand_in.begin(), claim_.stand_in.end(), name) - claim_.stand_in.begin();
        return figures_.at(claim_.figures[static_cast<std::size_t>(at)]).judged();
    }

    double unary(const Expr &node) const {
        const double a = of(node.a);
        if (node.op == Expr::Op::logical_not) return a == 0 ? 1 : 0;
        return node.op == Expr::Op::minus ? -a : a;
    }

    double binary(const Expr &node) const {
        const double a = of(node.a), b = of(node.b);
        switch (node.op) {
        case Expr::Op::mul: return a * b;
        case Expr::Op::div: return a / b;
        case Expr::Op::add: return a + b;
        case Expr::Op::sub: return a - b;
        case Expr::Op::lt: return a < b ? 1 : 0;
        case Expr::Op::le: return a <= b ? 1 : 0;
        case Expr::Op::gt: return a > b ? 1 : 0;
        case Expr::Op::ge: return a >= b ? 1 : 0;
        case Expr::Op::eq: return a == b ? 1 : 0;
        case Expr::Op::ne: return a != b ? 1 : 0;
        case Expr::Op::logical_and: return a != 0 && b != 0 ? 1 : 0;
        default: return a != 0 || b != 0 ? 1 : 0; // logical_or
        }
    }

    const Claim &claim_;
    const Figures &figures_;
};

} // namespace

Verdict judge(const Claim &claim, const Figures &figures) {
    for (const std::string &figure : claim.figures)
        if (!figures.contains(figure)) return Verdict::left_out;
    return Evaluation(claim, figures).of(claim.tree.root) != 0 ? Verdict::holds : Verdict::broken;
}

void Order::add(Thread thread, std::uint64_t entry_ns, Name name) {
    Hits &hits = hits_[thread];
    const bool fits_last = is_sorted_ && !hits.empty() && hits.back().second == Name::first;
    if (fits_last && kind_ == Claim::Kind::before) return; // a first one has been: from now on all fit
    if (is_sorted_ && kind_ == Claim::Kind::then && name == Name::second) {
        const bool fits_all_before = hits.size() < 2 || hits[hits.size() - 2].second == Name::second;
        if (fits_last && fits_all_before) hits.pop_back();
        if (!fits_last || fits_all_before) return;
    }
    hits.emplace_back(entry_ns, name);
}

void Order::find(std::vector<Break> &found, Thread thread, Hits hits, bool has_ended) const {
    std::stable_sort(hits.begin(), hits.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    bool seen = false;          // before: a first one
    std::uint64_t waits_ns = 0; // then: the entry of a first one without a second one so far
    for (const auto &[entry_ns, name] : hits) {
        if (kind_ == Claim::Kind::before) {
            seen = seen || name == Name::first;
            if (!seen) found.push_back({thread, entry_ns});
            continue;
        }
        if (name == Name::first && waits_ns != 0) found.push_back({thread, waits_ns});
        waits_ns = name == Name::first ? entry_ns : 0;
    }
    if (waits_ns != 0 && has_ended) found.push_back({thread, waits_ns});
}

} // namespace ktrace::expect
