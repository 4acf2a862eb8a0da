// The flame graph: places and widths of functions, and names that could break XML.
#include "sample/flame_graph.h"

#include <gtest/gtest.h>

namespace ktrace::sample {
namespace {

std::size_t count(const std::string &text, const std::string &part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) found++;
    return found;
}

TEST(FlameGraph, CalleesLieWithinTheirCaller) {
    const std::string svg = flame_graph("t", {{{"w", "main", "a"}, 1}, {{"w", "main", "b"}, 2}, {{"w", "main"}, 1}});
    EXPECT_NE(svg.find(R"(data-from="0" data-looks="4" data-row="2"><title>main (4 looks, 100.0%)</title>)"), svg.npos);
    EXPECT_NE(svg.find(R"(data-from="0" data-looks="1" data-row="3"><title>a (1 looks, 25.0%)</title>)"), svg.npos);
    EXPECT_NE(svg.find(R"(data-from="1" data-looks="2" data-row="3"><title>b (2 looks, 50.0%)</title>)"), svg.npos);
    EXPECT_NE(svg.find(R"(<rect x="25.0000%")"), svg.npos);
    EXPECT_EQ(count(svg, "<g "), 5U); // all, w, main, a, b
    EXPECT_EQ(count(svg, "</g>"), 5U);
}

TEST(FlameGraph, NamesAreEscaped) {
    const std::string svg = flame_graph("<&>", {{{"w", "f<int&>(\"x\")"}, 1}});
    EXPECT_NE(svg.find("f&lt;int&amp;&gt;(&quot;x&quot;) (1 looks"), svg.npos);
    EXPECT_NE(svg.find(">&lt;&amp;&gt;</text>"), svg.npos);
}

TEST(FlameGraph, OfNothing) {
    const std::string svg = flame_graph("t", {});
    EXPECT_EQ(count(svg, "<g "), 1U);
    EXPECT_EQ(svg.find("nan"), svg.npos);
}

} // namespace
} // namespace ktrace::sample
