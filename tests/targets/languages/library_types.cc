// Objects of the C++ library: each function prints its arguments as they are to be shown, by code of its own.
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <forward_list>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

using Names = std::vector<std::string>;
struct Point {
    int x, y;
};
struct Person {
    int id;
    std::string name;
    std::vector<int> scores;
    std::optional<Point> at;
};

std::string shown(int value) { return std::to_string(value); }
std::string shown(short value) { return std::to_string(value); }
std::string shown(long double value) {
    std::ostringstream out;
    out << value;
    return out.str();
}
std::string shown(double value) { return shown(static_cast<long double>(value)); }
std::string shown(char value) { return std::string("'") + value + "'"; }
std::string shown(std::string_view value) { return '"' + std::string(value) + '"'; }
std::string shown(const std::string &value) { return shown(std::string_view(value)); }
std::string shown(bool value) { return value ? "true" : "false"; }
std::string shown(const std::vector<bool> &value);
std::string shown(const Point &value) { return "{.x=" + shown(value.x) + ", .y=" + shown(value.y) + "}"; }
std::string shown(std::chrono::milliseconds value) { return std::to_string(value.count()) + "ms"; }
std::string shown(std::chrono::hours value) { return std::to_string(value.count()) + "h"; }
std::string shown(std::chrono::duration<double> value) { return shown(value.count()) + "s"; }
template <class T> std::string shown(const std::optional<T> &value) { return value ? shown(*value) : "nothing"; }
template <class T> std::string shown(const std::atomic<T> &value) { return shown(value.load()); }
template <class T> std::string shown(const std::unique_ptr<T> &value) { return value ? shown(*value) : "0x0"; }
template <class T> std::string shown(const std::shared_ptr<T> &value) { return value ? shown(*value) : "0x0"; }
template <class... T> std::string shown(const std::variant<T...> &value) {
    return std::visit([](const auto &held) { return shown(held); }, value);
}
template <class K, class V> std::string shown(const std::pair<K, V> &value) {
    return "{.first=" + shown(value.first) + ", .second=" + shown(value.second) + "}";
}
template <class... T> std::string shown(const std::tuple<T...> &value) {
    return std::apply(
        [](const auto &...each) {
            std::string out;
            ((out += (out.empty() ? "(" : ", ") + shown(each)), ...);
            return out + ")";
        },
        value);
}

/// Ten elements at most.
template <class Each, class Show> std::string listed(const Each &each, const char *ends, Show show) {
    std::string out(1, ends[0]);
    int n = 0;
    for (const auto &element : each) {
        if (n++ != 0) out += ", ";
        if (n == 11) {
            out += "...";
            break;
        }
        out += show(element);
    }
    return out + ends[1];
}
template <class Each> std::string shown(const Each &each) requires requires { each.begin(); }
{
    if constexpr (requires { typename Each::mapped_type; })
        return listed(each, "{}", [](const auto &e) { return "[" + shown(e.first) + "]=" + shown(e.second); });
    else
        return listed(each, "[]", [](const auto &e) { return shown(e); });
}
std::string shown(const std::vector<bool> &value) { return shown(std::deque<bool>(value.begin(), value.end())); }
std::string shown(const Person &value) {
    return "{.id=" + shown(value.id) + ", .name=" + shown(value.name) + ", .scores=" + shown(value.scores) +
           ", .at=" + shown(value.at) + "}";
}

template <class... T> void say(const char *function, const char *names, const T &...values) {
    std::istringstream all(names);
    std::string line, name;
    ((all >> name, line += (line.empty() ? "" : ", ") + name + "=" + shown(values)), ...);
    std::cout << function << '(' << line << ")\n";
}

#define APART __attribute__((noinline))

APART void texts(std::string a, const std::string &b, std::string_view c, std::string d) {
    say("texts", "a b c d", a, b, c, d);
}
APART void vectors(const std::vector<int> &v, Names n, std::vector<std::vector<short>> w, std::vector<Point> p) {
    say("vectors", "v n w p", v, n, w, p);
}
APART void arrays(std::array<int, 3> a, std::array<std::string, 2> b, std::span<int> s, std::span<short, 2> t) {
    say("arrays", "a b s t", a, b, s, t);
}
APART void maps(std::map<std::string, int> m, std::map<int, std::vector<int>> n, std::multimap<char, double> o) {
    say("maps", "m n o", m, n, o);
}
APART void sets(std::set<int> s, std::set<std::string> t, std::multiset<char> u) { say("sets", "s t u", s, t, u); }
APART void tables(std::unordered_map<int, std::string> m, std::unordered_set<std::string> s,
                  std::unordered_set<short> t) {
    say("tables", "m s t", m, s, t);
}
APART void queues(const std::deque<int> &d, std::deque<Point> e, std::list<int> l, std::forward_list<std::string> f) {
    say("queues", "d e l f", d, e, l, f);
}
APART void maybe(std::optional<int> a, std::optional<std::string> b, std::optional<int> c, std::optional<char> d) {
    say("maybe", "a b c d", a, b, c, d);
}
APART void variants(std::variant<int, std::string> a, std::variant<int, std::string> b, std::variant<double, Point> c) {
    say("variants", "a b c", a, b, c);
}
APART void compounds(std::tuple<int, std::string, double> t, std::pair<int, std::string> p, std::tuple<char, short> u) {
    say("compounds", "t p u", t, p, u);
}
APART void pointers(std::unique_ptr<int> a, std::unique_ptr<Point> b, std::shared_ptr<std::string> c,
                    std::unique_ptr<int> d, const std::atomic<int> &e) {
    say("pointers", "a b c d e", a, b, c, d, e);
}
APART void times(std::chrono::milliseconds a, std::chrono::hours b, std::chrono::duration<double> c) {
    say("times", "a b c", a, b, c);
}
APART void persons(const Person &p, std::vector<Person> q) { say("persons", "p q", p, q); }
APART void wide(std::set<long double> s, std::map<char, long double> m, std::list<long double> l) {
    say("wide", "s m l", s, m, l);
}
APART void flags(std::vector<bool> a, const std::vector<bool> &b, std::vector<bool> c,
                 std::vector<std::vector<bool>> d) {
    say("flags", "a b c d", a, b, c, d);
}
int main() {
    std::vector<int> few{1, 2, 3}, many(300, 7);
    short two[] = {-1, 2};
    std::deque<int> moved;
    for (int i = 0; i < 1500; i++) moved.push_back(i);
    for (int i = 0; i < 1090; i++) moved.pop_front();
    std::atomic<int> five(5);
    texts("short", "a text that has more than fifteen bytes", "view", "");
    vectors(many, {"one", "a text that has more than fifteen bytes"}, {{1, 2}, {}, {3}}, {{1, 2}, {3, 4}});
    arrays({7, 8, 9}, {"x", "y"}, few, two);
    maps({{"b", 2}, {"a", 1}, {"c", 3}}, {{1, {1, 2}}, {0, {}}}, {{'k', 1.5}, {'k', 2.5}});
    sets({3, 1, 2, 12, 11, 10, 9, 8, 7, 6, 5, 4}, {"t"}, {'b', 'a', 'b'});
    tables({{1, "one"}, {2, "two"}}, {"only"}, {5, 6, 7});
    queues(moved, {{1, 2}, {3, 4}}, {4, 5, 6}, {"f", "g"});
    maybe(5, "text", {}, 'x');
    variants(1, "v", Point{5, 6});
    compounds({1, "two", 3.5}, {1, "p"}, {'q', short(9)});
    pointers(std::make_unique<int>(5), std::make_unique<Point>(Point{1, 2}), std::make_shared<std::string>("shared"),
             nullptr, five);
    times(std::chrono::milliseconds(5), std::chrono::hours(6), std::chrono::duration<double>(1.5));
    persons({1, "alice", {90, 80}, Point{1, 2}}, {{2, "bob", {}, {}}});
    wide({1.5L, 2.5L}, {{'a', 3.5L}}, {4.5L});
    std::vector<bool> nine(9, true);
    nine[1] = nine[8] = false;
    flags(nine, {}, std::vector<bool>(70, true), {{true}, {false, true}});
}
