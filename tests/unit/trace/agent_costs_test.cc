#include "trace/agent_costs.h"

#include <gtest/gtest.h>

#include "arch/host.h"

namespace ktrace::trace {
namespace {

constexpr std::uint64_t one_ns = std::uint64_t{1} << 32; // a tick

TEST(AgentCosts, AreMeasuredWhereThereIsAnAgent) {
    const engine::AgentCosts costs = measure_agent_costs(one_ns);
    EXPECT_EQ(costs.is_known(), !arch::HostDetour::rehearsal_code().bytes.empty());
    if (!costs.is_known()) return;
    EXPECT_GT(costs.per_call, 0u);
    EXPECT_LE(costs.of_call.p50, costs.of_call.p90);
    EXPECT_LE(costs.of_call.p90, costs.of_call.p99);
}

TEST(AgentCosts, AreNotKnownWithoutAClock) { EXPECT_FALSE(measure_agent_costs(0).is_known()); }

} // namespace
} // namespace ktrace::trace
