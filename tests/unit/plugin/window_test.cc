#include "plugin/window.h"

#include <gtest/gtest.h>

namespace ktrace::plugin {
namespace {

os::Mapping mapping(std::uint64_t start, std::uint64_t end) {
    os::Mapping made;
    made.start = VirtAddr{start};
    made.end = VirtAddr{end};
    return made;
}

/// The maps of a position independent program.
const std::vector<os::Mapping> usual = {
    mapping(0x555555554000, 0x555555560000), mapping(0x555555560000, 0x555555581000),
    mapping(0x7ffff7c00000, 0x7ffff7fff000), mapping(0x7ffffffde000, 0x7ffffffff000)};

bool is_free(const std::vector<os::Mapping> &maps, const Window &window) {
    for (const os::Mapping &map : maps)
        if (map.start.value < window.start + window.size && window.start < map.end.value) return false;
    return true;
}

TEST(Window, lies_in_a_hole_far_from_what_grows) {
    auto window = choose_window(usual, 0);
    ASSERT_TRUE(window);
    EXPECT_TRUE(is_free(usual, *window));
    constexpr std::uint64_t far = std::uint64_t{1} << 40;
    EXPECT_GT(window->start, far);
    EXPECT_LT(window->start + window->size + far, usual[0].start.value);
}

TEST(Window, every_attempt_is_another_place) {
    std::vector<std::uint64_t> starts;
    for (unsigned attempt = 0; attempt < window_attempts; attempt++) {
        auto window = choose_window(usual, attempt);
        ASSERT_TRUE(window);
        EXPECT_TRUE(is_free(usual, *window));
        for (std::uint64_t other : starts) EXPECT_NE(other, window->start);
        starts.push_back(window->start);
    }
}

TEST(Window, of_maps_in_any_order_that_overlap) {
    std::vector<os::Mapping> maps = {mapping(0x3000'0000'0000, 0x3f00'0000'0000),
                                     mapping(0x1'0000'0000, 0x1000'0000'0000),
                                     mapping(0x2000'0000'0000, 0x3800'0000'0000)};
    auto window = choose_window(maps, 0);
    ASSERT_TRUE(window);
    EXPECT_TRUE(is_free(maps, *window));
    EXPECT_GE(window->start, 0x1000'0000'0000U);
    EXPECT_LT(window->start, 0x2000'0000'0000U);
}

TEST(Window, none_where_everything_is_mapped) { EXPECT_FALSE(choose_window({mapping(0x10000, 0x7fff'ffff'f000)}, 0)); }

} // namespace
} // namespace ktrace::plugin
