// Functions with instructions of all kinds, in a section of their own: what detours are planted in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ktrace::test {

/// One that is called from outside: two numbers, and `detoured_words` words of memory.
struct Detoured {
    using Call = std::uint64_t (*)(std::uint64_t, std::uint64_t, std::uint64_t *);
    Call call;
    std::size_t most_calls = 100; // a throw is long to step
};
inline constexpr std::size_t detoured_words = 16;

std::span<const Detoured> detoured();

} // namespace ktrace::test

/// The bounds of the section. It holds other functions, too, which these call.
extern "C" const std::byte __start_detoured[], __stop_detoured[];
