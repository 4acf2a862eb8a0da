#include "base/errno_names.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ktrace {

namespace {

constexpr int last = 4095; // of the kernel's range

} // namespace

std::optional<int> errno_number(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, int>, 4> second_names{
        {{"EWOULDBLOCK", EWOULDBLOCK}, {"EDEADLOCK", EDEADLOCK}, {"ENOTSUP", ENOTSUP}, {"EOPNOTSUPP", EOPNOTSUPP}}};
    if (!name.starts_with('E')) return std::nullopt;
    for (auto [known, number] : second_names)
        if (known == name) return number;
    for (int number = 1; number <= last; number++)
        if (const char *known = ::strerrorname_np(number); known && known == name) return number;
    return std::nullopt;
}

std::string_view errno_name(std::int64_t number) {
    if (number <= 0 || number > last) return {};
    const char *name = ::strerrorname_np(static_cast<int>(number));
    return name ? name : std::string_view{};
}

} // namespace ktrace
