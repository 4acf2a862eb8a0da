// Which calls may be taken for returned though they were left.
#include "engine/calls/doubtful_calls.h"

#include <gtest/gtest.h>

namespace ktrace::engine {
namespace {

struct Row {
    const char *what;
    VirtAddr direct_target;
    bool has_return_site, is_on;
    bool is_doubtful;
};

constexpr VirtAddr function{0x401000}, another{0x402000}, indirect{};

constexpr Row calls[] = {
    {"an indirect call", indirect, true, true, true},
    {"a direct call: its probe sees the next one", function, true, true, false},
    {"a direct call, of which the probe sees no other", function, true, false, true},
    {"a direct call to a function that jumps to it", another, true, true, true},
    {"an indirect call that ends at its function's own return instructions", indirect, false, true, false},
    {"a direct call that ends there, with its probe off", function, false, false, false},
};

TEST(DoubtfulCalls, AreThoseWhoseCallInstructionMayLeadElsewhere) {
    for (const Row &row : calls) {
        Site site, return_site;
        site.at = function;
        Attachment attachment;
        attachment.on = row.is_on;
        Instance call;
        call.attachment = &attachment;
        call.site = &site;
        call.return_site = row.has_return_site ? &return_site : nullptr;
        EXPECT_EQ(is_doubtful(call, row.direct_target), row.is_doubtful) << row.what;
    }
}

} // namespace
} // namespace ktrace::engine
