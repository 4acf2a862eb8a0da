// WSPECs: what is read from the text, and where errors point.
#include "probe/watch_spec.h"

#include <gtest/gtest.h>

namespace ktrace::probe {
namespace {

using When = arch::WatchRegister::When;

TEST(WatchSpecs, AreRead) {
    struct Row {
        const char *text, *name;
        std::uint64_t address, length;
        When when;
    };
    const Row rows[] = {
        {"counter", "counter", 0, 0, When::write},
        {"counter:w", "counter", 0, 0, When::write},
        {"counter:rw", "counter", 0, 0, When::access},
        {"f:x", "f", 0, 0, When::execute},
        {"cfg.table[2]/2:rw", "cfg.table[2]", 0, 2, When::access},
        {"ns::counter", "ns::counter", 0, 0, When::write},
        {"0x404040", "", 0x404040, 0, When::write},
        {"0x404040/4:rw", "", 0x404040, 4, When::access},
    };
    for (const Row &row : rows) {
        auto spec = parse_watch(row.text);
        ASSERT_TRUE(spec) << row.text << ": " << spec.error().message;
        EXPECT_EQ(spec->name, row.name) << row.text;
        EXPECT_EQ(spec->address, row.address) << row.text;
        EXPECT_EQ(spec->length, row.length) << row.text;
        EXPECT_EQ(spec->when, row.when) << row.text;
    }
}

TEST(WatchSpecs, ErrorsPointAtTheColumn) {
    const std::pair<const char *, int> rows[] = {{"", 0},          {"counter/", 8}, {"counter/x", 8}, {"counter/0", 8},
                                                 {"counter:q", 7}, {"0xzz", 0},     {"0x10:q", 4},    {"/4", 0}};
    for (auto [text, column] : rows) {
        auto spec = parse_watch(text);
        ASSERT_FALSE(spec) << text;
        EXPECT_EQ(spec.error().kind, Error::Kind::usage) << text;
        EXPECT_EQ(spec.error().column, column) << text;
    }
}

} // namespace
} // namespace ktrace::probe
