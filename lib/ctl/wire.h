// The messages between `ktrace ctl` and the ktrace that traces: one order and one answer a connection, as text with
// its sizes in front. Pure.
//
//     ktrace-ctl 1 COUNT SIZE\n     an order: SIZE bytes follow: COUNT words, each with a NUL behind it
//     ktrace-ctl 1 STATUS OUT ERR\n an answer: the exit status; OUT bytes for standard output, ERR for standard error
//
// Invariants: no reader trusts a number of it: longer messages than the limits are refused before they are gathered.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ktrace::ctl {

inline constexpr std::size_t most_order_bytes = 128 * 1024;
inline constexpr std::size_t most_answer_bytes = 256 * 1024 * 1024;

struct Answer {
    int status = 0; // ctl's exit status
    std::string out, err;
};

std::string write_order(const std::vector<std::string> &words);
std::string write_answer(const Answer &answer);

/// The words of an order as soon as all of it is there; nothing: more is to come. Errors: refused: this will never be
/// one.
Result<std::optional<std::vector<std::string>>> read_order(std::string_view bytes);
/// The same of an answer.
Result<std::optional<Answer>> read_answer(std::string_view bytes);

} // namespace ktrace::ctl
