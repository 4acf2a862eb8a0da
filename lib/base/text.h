// Text: small functions on strings that several rooms need (escaping, globs, numbers, nearest names).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ktrace::text {

/// `raw` with control characters, quotes, backslashes and invalid UTF-8 escaped as in C (\n, \t, \", \x1b …): safe to
/// send to a terminal. Does not add quotes.
std::string escape(std::string_view raw);

/// Length of the valid UTF-8 sequence at the front of `text` (not empty), 0 where there is none (RFC 3629, no
/// surrogates).
std::size_t utf8_length(std::string_view text);

/// True where `text` holds an unescaped glob character (* ? [).
bool is_glob(std::string_view text);

/// Shell-like match of the whole `text`: *, ?, [a-z], [!a]; `\` takes the next character literally.
bool glob_match(std::string_view pattern, std::string_view text);

/// An unsigned number, decimal or 0x hex, of the whole text; nothing where it is no number or overflows.
std::optional<std::uint64_t> parse_u64(std::string_view text);
std::optional<std::int64_t> parse_i64(std::string_view text);

/// A duration: a decimal number with ns, us, ms, s, m or h behind it (`10s`, `250ms`, `0.5s`, `2m`), in nanoseconds.
std::optional<std::uint64_t> parse_duration(std::string_view text);

/// Edit distance of two names (Levenshtein's, with neighbours that have changed places as one edit), cut off at `limit`
/// (returns limit + 1 where it is more).
int edit_distance(std::string_view a, std::string_view b, int limit);

/// The names of `candidates` nearest to `wanted` (at most `most`), best first; only those near enough to be a typo of
/// it, or that hold it; the same name in a namespace or class comes first.
std::vector<std::string> nearest(std::string_view wanted, const std::vector<std::string_view> &candidates,
                                 std::size_t most);

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// The name of a signal: `SIGKILL`; `signal 34` where it has no name.
std::string signal_name(int signal);

/// The part behind the last '/'.
std::string_view base_name(std::string_view path);

} // namespace ktrace::text
