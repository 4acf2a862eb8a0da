// The probes of a trace by number.
#include "probe/registry.h"

#include <gtest/gtest.h>

namespace ktrace::probe {
namespace {

using Numbers = std::vector<std::uint32_t>;

Probe wanted(const char *spec, Kind kind = Kind::probe) {
    Probe made;
    made.kind = kind;
    made.spec = *parse_spec(spec);
    return made;
}

struct RegistryTest : testing::Test {
    std::shared_ptr<ProbeSet> set = std::make_shared<ProbeSet>();
    Registry registry;

    Numbers enter(const std::vector<Probe> &probes) {
        Numbers numbers = registry.enter(set, probes);
        for (std::uint32_t number : numbers) registry.at(number).ready = true;
        return numbers;
    }
};

TEST_F(RegistryTest, NumbersCountFromOne) {
    EXPECT_EQ(enter({wanted("a"), wanted("b")}), (Numbers{1, 2}));
    EXPECT_EQ(enter({wanted("c")}), Numbers{3});
    EXPECT_EQ(registry.at(2).probe.spec.text, "b");
    EXPECT_EQ(registry.at(2).probe.number, 2U);
}

TEST_F(RegistryTest, ProbesAreFoundByNumberAndByText) {
    enter({wanted("f"), wanted("lib:g+0x4"), wanted("f", Kind::ret)});
    EXPECT_EQ(*registry.named("2"), Numbers{2});
    EXPECT_EQ(*registry.named("f"), (Numbers{1, 3}));
    EXPECT_EQ(*registry.named("lib:g+0x4"), Numbers{2});
    for (const char *none : {"0", "4", "g", "", "f+0", "-1", "18446744073709551617"})
        EXPECT_FALSE(registry.named(none)) << none;
}

TEST_F(RegistryTest, AnAddressIsASpecBeforeItIsANumber) {
    enter({wanted("f"), wanted("0x1")});
    EXPECT_EQ(*registry.named("0x1"), Numbers{2});
    EXPECT_EQ(*registry.named("1"), Numbers{1});
}

TEST_F(RegistryTest, ARemovedProbeIsNotFoundAndItsNumberNotGivenAgain) {
    enter({wanted("f"), wanted("g")});
    registry.at(2).removed = true;
    auto named = registry.named("2");
    ASSERT_FALSE(named);
    EXPECT_EQ(named.error().message, "probe 2 was removed");
    EXPECT_EQ(registry.present(), Numbers{1});
    EXPECT_EQ(enter({wanted("h")}), Numbers{3});
}

TEST_F(RegistryTest, WhatCouldNotBeRegisteredLeavesNoGap) {
    enter({wanted("f")});
    registry.take_back(registry.enter(set, {wanted("g"), wanted("h")}));
    EXPECT_EQ(enter({wanted("i")}), Numbers{2});
}

TEST_F(RegistryTest, ProbesOfOursTakeNoNumberOfTheUsers) {
    auto ours = std::make_shared<ProbeSet>();
    ours->hidden = true;
    enter({wanted("f")});
    Numbers enclosing = registry.enter(ours, {wanted("around")});
    EXPECT_EQ(enter({wanted("g")}), Numbers{2});
    EXPECT_EQ(registry.at(enclosing.front()).probe.spec.text, "around");
    EXPECT_EQ(registry.present(), (Numbers{1, 2, enclosing.front()}));
    EXPECT_EQ(registry.shown(), (Numbers{1, 2}));
    EXPECT_EQ(registry.last(), 2U);
    EXPECT_FALSE(registry.named("around"));
    EXPECT_FALSE(registry.named(std::to_string(enclosing.front())));
}

TEST_F(RegistryTest, WhatIsTakenBackWithOneOfOursLeavesNoGapEither) {
    auto ours = std::make_shared<ProbeSet>();
    ours->hidden = true;
    Numbers refused = registry.enter(set, {wanted("f"), wanted("g")});
    refused.push_back(registry.enter(ours, {wanted("around")}).front());
    registry.take_back(refused);
    EXPECT_TRUE(registry.present().empty());
    EXPECT_EQ(enter({wanted("h")}), Numbers{1});
    EXPECT_EQ(registry.enter(ours, {wanted("around")}).front(), refused.back());
}

TEST_F(RegistryTest, NobodysNumberChangesWhenEarlierOnesAreTakenBack) {
    Numbers refused = registry.enter(set, {wanted("g")});
    EXPECT_EQ(enter({wanted("h")}), Numbers{2}); // by a handler, meanwhile
    registry.take_back(refused);
    EXPECT_EQ(registry.present(), Numbers{2});
    EXPECT_EQ(registry.at(2).probe.spec.text, "h");
}

TEST_F(RegistryTest, AProbeIsOnWhenNothingSpeaksAgainstIt) {
    ProbeEntry &probe = registry.at(enter({wanted("f")}).front());
    EXPECT_TRUE(registry.is_on(1));
    for (bool *condition : {&probe.probe.enabled, &probe.ready}) {
        *condition = false;
        EXPECT_FALSE(registry.is_on(1));
        *condition = true;
    }
    registry.switch_all(false);
    EXPECT_FALSE(registry.is_on(1));
    EXPECT_TRUE(probe.probe.enabled);
    registry.switch_all(true);
    probe.removed = true;
    EXPECT_FALSE(registry.is_on(1));
}

} // namespace
} // namespace ktrace::probe
