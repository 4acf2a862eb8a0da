#include "base/xml.h"

#include <gtest/gtest.h>

namespace ktrace::text {
namespace {

TEST(Xml, WritesWhatHasAMeaningAsReferences) {
    EXPECT_EQ(in_xml("f<int>(\"a\" & b)\n"), "f&lt;int&gt;(&quot;a&quot; &amp; b)&#10;");
    EXPECT_EQ(in_xml("plain, 'quoted' \xc3\xa4"), "plain, 'quoted' \xc3\xa4");
}

} // namespace
} // namespace ktrace::text
