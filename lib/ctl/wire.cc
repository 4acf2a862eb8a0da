#include "ctl/wire.h"

#include <array>

#include "base/text.h"

namespace ktrace::ctl {

namespace {

constexpr std::string_view greeting = "ktrace-ctl 1 ";
constexpr std::size_t longest_head = 80;

tl::unexpected<Error> bad() {
    return fail(Error::Kind::refused, "this is no message between ktrace ctl and ktrace",
                "both have to be of the same version");
}

template <std::size_t N> struct Head {
    std::array<std::uint64_t, N> numbers{};
    std::size_t size = 0; // bytes, with the end of the line
};

/// The first line, as soon as it is there.
template <std::size_t N> Result<std::optional<Head<N>>> read_head(std::string_view bytes) {
    std::string_view start = bytes.substr(0, greeting.size());
    if (start != greeting.substr(0, start.size())) return bad();
    std::size_t end = bytes.substr(0, longest_head).find('\n');
    if (end == std::string_view::npos) {
        if (bytes.size() >= longest_head) return bad();
        return std::nullopt;
    }
    if (end < greeting.size()) return bad();
    auto words = text::split(bytes.substr(greeting.size(), end - greeting.size()), ' ');
    if (words.size() != N) return bad();
    Head<N> head;
    head.size = end + 1;
    for (std::size_t i = 0; i < N; i++) {
        auto number = text::parse_u64(words[i]);
        if (!number) return bad();
        head.numbers[i] = *number;
    }
    return head;
}

} // namespace

std::string write_order(const std::vector<std::string> &words) {
    std::string body;
    for (const std::string &word : words) body += word + '\0';
    return std::string(greeting) + std::to_string(words.size()) + ' ' + std::to_string(body.size()) + '\n' + body;
}

std::string write_answer(const Answer &answer) {
    return std::string(greeting) + std::to_string(answer.status) + ' ' + std::to_string(answer.out.size()) + ' ' +
           std::to_string(answer.err.size()) + '\n' + answer.out + answer.err;
}

Result<std::optional<std::vector<std::string>>> read_order(std::string_view bytes) {
    auto head = read_head<2>(bytes);
    if (!head) return fail(head.error());
    if (!*head) return std::nullopt;
    auto [count, size] = (*head)->numbers;
    if (size > most_order_bytes || count > size) return bad();
    std::string_view body = bytes.substr((*head)->size);
    if (body.size() < size) return std::nullopt;
    body = body.substr(0, size);
    std::vector<std::string> words;
    while (!body.empty()) {
        std::size_t end = body.find('\0');
        if (end == std::string_view::npos) return bad();
        words.emplace_back(body.substr(0, end));
        body.remove_prefix(end + 1);
    }
    if (words.size() != count) return bad();
    return words;
}

Result<std::optional<Answer>> read_answer(std::string_view bytes) {
    auto head = read_head<3>(bytes);
    if (!head) return fail(head.error());
    if (!*head) return std::nullopt;
    auto [status, out, err] = (*head)->numbers;
    if (status > 255 || out > most_answer_bytes || err > most_answer_bytes) return bad();
    std::string_view body = bytes.substr((*head)->size);
    if (body.size() < out + err) return std::nullopt;
    return Answer{static_cast<int>(status), std::string(body.substr(0, out)), std::string(body.substr(out, err))};
}

} // namespace ktrace::ctl
