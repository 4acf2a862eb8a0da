#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

namespace ktrace::text {

namespace {

void append_hex(std::string &out, unsigned char c) {
    static constexpr char digits[] = "0123456789abcdef";
    out += "\\x";
    out += digits[c >> 4];
    out += digits[c & 15];
}

} // namespace

std::size_t utf8_length(std::string_view s) {
    auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    auto tail = [&](std::size_t i) { return i < s.size() && (byte(i) & 0xc0U) == 0x80; };
    unsigned char b = byte(0);
    if (b < 0x80) return 1;
    if (b >= 0xc2 && b <= 0xdf) return tail(1) ? 2 : 0;
    if (b >= 0xe0 && b <= 0xef) {
        if (!tail(1) || !tail(2)) return 0;
        if ((b == 0xe0 && byte(1) < 0xa0) || (b == 0xed && byte(1) > 0x9f)) return 0;
        return 3;
    }
    if (b >= 0xf0 && b <= 0xf4) {
        if (!tail(1) || !tail(2) || !tail(3)) return 0;
        if ((b == 0xf0 && byte(1) < 0x90) || (b == 0xf4 && byte(1) > 0x8f)) return 0;
        return 4;
    }
    return 0;
}

std::string escape(std::string_view raw) {
    std::string out;
    out.reserve(raw.size() + 8);
    while (!raw.empty()) {
        auto c = static_cast<unsigned char>(raw[0]);
        std::size_t length = utf8_length(raw);
        // C1 control characters (U+0080..U+009F) steer terminals as well.
        bool c1 = length == 2 && c == 0xc2 && static_cast<unsigned char>(raw[1]) < 0xa0;
        switch (c) {
        case '\n': out += "\\n"; break;
        case '\t': out += "\\t"; break;
        case '\r': out += "\\r"; break;
        case '"': out += "\\\""; break;
        case '\\': out += "\\\\"; break;
        default:
            if (length == 0 || c < 0x20 || c == 0x7f || c1) {
                length = 1;
                append_hex(out, c);
            } else {
                out.append(raw.substr(0, length));
            }
        }
        raw.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out;
}

bool is_glob(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '*' || text[i] == '?' || text[i] == '[')
            return true;
    }
    return false;
}

namespace {

/// Matches the bracket expression that starts at pattern[at] against c; moves `at` behind it. A '[' that is not closed
/// is an ordinary character.
bool bracket_match(std::string_view pattern, std::size_t &at, char c) {
    std::size_t i = at + 1;
    bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
    if (negated) i++;
    bool matched = false;
    for (bool first = true; i < pattern.size(); first = false) {
        if (pattern[i] == ']' && !first) {
            at = i + 1;
            return matched != negated;
        }
        char low = pattern[i++];
        char high = low;
        if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
            high = pattern[i + 1];
            i += 2;
        }
        matched = matched || (low <= c && c <= high);
    }
    at++;
    return c == '[';
}

} // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0;
    std::size_t star = std::string_view::npos, star_text = 0;
    while (true) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = ++p;
            star_text = t;
            continue;
        }
        bool matched = false;
        if (t < text.size() && p < pattern.size()) {
            std::size_t next = p;
            if (pattern[p] == '?') {
                matched = true;
                next = p + 1;
            } else if (pattern[p] == '[') {
                matched = bracket_match(pattern, next, text[t]);
            } else {
                if (pattern[p] == '\\' && p + 1 < pattern.size()) next = p + 1;
                matched = pattern[next] == text[t];
                next++;
            }
            if (matched) {
                p = next;
                t++;
                continue;
            }
        }
        if (t == text.size() && p == pattern.size()) return true;
        if (star == std::string_view::npos || star_text >= text.size()) return false;
        t = ++star_text;
        p = star;
    }
}

std::optional<std::uint64_t> parse_u64(std::string_view text) {
    int base = 10;
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text.remove_prefix(2);
    }
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

std::optional<std::int64_t> parse_i64(std::string_view text) {
    bool negative = !text.empty() && text[0] == '-';
    auto magnitude = parse_u64(negative ? text.substr(1) : text);
    if (!magnitude) return std::nullopt;
    constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (*magnitude > limit + (negative ? 1 : 0)) return std::nullopt;
    return static_cast<std::int64_t>(negative ? 0 - *magnitude : *magnitude);
}

std::optional<std::uint64_t> parse_duration(std::string_view text) {
    struct Unit {
        std::string_view name;
        double ns;
    };
    static constexpr std::array<Unit, 6> units{
        {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};
    double number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc{} || number < 0) return std::nullopt;
    std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
    for (const Unit &unit : units) {
        if (rest != unit.name) continue;
        double ns = number * unit.ns;
        if (!(ns < 9.2e18)) return std::nullopt;
        return static_cast<std::uint64_t>(ns + 0.5);
    }
    return std::nullopt;
}

int edit_distance(std::string_view a, std::string_view b, int limit) {
    auto too_far = static_cast<std::size_t>(limit) + 1;
    std::size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
    if (difference >= too_far) return limit + 1;
    std::vector<std::size_t> row(b.size() + 1), above(row.size()), second(row.size()); // and the one above that
    for (std::size_t j = 0; j <= b.size(); j++) row[j] = j;
    std::size_t least_above = 0;
    for (std::size_t i = 1; i <= a.size(); i++) {
        second.swap(above);
        above.swap(row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); j++) {
            const std::size_t change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, change});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = std::min(row[j], second[j - 2] + 1);
        }
        // A swap skips a row: only two in a row that are too far leave no way.
        const std::size_t least = *std::min_element(row.begin(), row.end());
        if (std::min(least, least_above) >= too_far) return limit + 1;
        least_above = least;
    }
    return static_cast<int>(std::min(row[b.size()], too_far));
}

namespace {

/// `n::f` for `f`: the wanted name, in a namespace or class.
bool is_in_scope(std::string_view name, std::string_view wanted) {
    return name.ends_with(wanted) && name.substr(0, name.size() - wanted.size()).ends_with("::");
}

} // namespace

std::vector<std::string> nearest(std::string_view wanted, const std::vector<std::string_view> &candidates,
                                 std::size_t most) {
    struct Scored {
        int score;
        std::string_view name;
    };
    int limit = std::max<int>(1, static_cast<int>(wanted.size()) / 3);
    std::vector<Scored> scored;
    for (std::string_view name : candidates) {
        int score = is_in_scope(name, wanted) ? 0 : edit_distance(wanted, name, limit);
        if (score > limit) {
            if (wanted.size() < 4 || name.find(wanted) == std::string_view::npos) continue;
            score = limit + static_cast<int>(std::min<std::size_t>(name.size() - wanted.size(), 1000));
        }
        scored.push_back({score, name});
    }
    std::sort(scored.begin(), scored.end(), [](const Scored &a, const Scored &b) {
        return a.score != b.score ? a.score < b.score : a.name < b.name;
    });
    std::vector<std::string> names;
    for (const Scored &s : scored) {
        if (names.size() == most) break;
        if (names.empty() || names.back() != s.name) names.emplace_back(s.name);
    }
    return names;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

std::string_view trim(std::string_view text) {
    auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

std::string signal_name(int signal) {
    const char *abbreviation = ::sigabbrev_np(signal);
    return abbreviation ? std::string("SIG") + abbreviation : "signal " + std::to_string(signal);
}

std::string_view base_name(std::string_view path) {
    std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

} // namespace ktrace::text
