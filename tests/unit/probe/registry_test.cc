// The probes of a trace by number.
#include "probe/registry.h"

#include <gtest/gtest.h>

namespace ktrace::probe {
namespace {

using Numbers = std::vector<std::uint32_t>;

ProbeRequest wish(const char *spec, Kind kind = Kind::probe) {
    ProbeRequest made;
    made.kind = kind;
    made.spec = *parse_spec(spec);
    return made;
}

struct RegistryTest : testing::Test {
    std::shared_ptr<ProbeSet> set = std::make_shared<ProbeSet>();
    Registry registry;

    Numbers enter(const std::vector<ProbeRequest> &wishes) {
        Numbers numbers = registry.enter(set, wishes);
        for (std::uint32_t number : numbers) registry.at(number).ready = true;
        return numbers;
    }
};

TEST_F(RegistryTest, NumbersCountFromOne) {
    EXPECT_EQ(enter({wish("a"), wish("b")}), (Numbers{1, 2}));
    EXPECT_EQ(enter({wish("c")}), Numbers{3});
    EXPECT_EQ(registry.at(2).probe.spec.text, "b");
    EXPECT_EQ(registry.at(2).probe.number, 2U);
}

TEST_F(RegistryTest, ProbesAreFoundByNumberAndByText) {
    enter({wish("f"), wish("lib:g+0x4"), wish("f", Kind::ret)});
    EXPECT_EQ(*registry.named("2"), Numbers{2});
    EXPECT_EQ(*registry.named("f"), (Numbers{1, 3}));
    EXPECT_EQ(*registry.named("lib:g+0x4"), Numbers{2});
    for (const char *none : {"0", "4", "g", "", "f+0", "-1", "18446744073709551617"})
        EXPECT_FALSE(registry.named(none)) << none;
}

TEST_F(RegistryTest, AnAddressIsASpecBeforeItIsANumber) {
    enter({wish("f"), wish("0x1")});
    EXPECT_EQ(*registry.named("0x1"), Numbers{2});
    EXPECT_EQ(*registry.named("1"), Numbers{1});
}

TEST_F(RegistryTest, ARemovedProbeIsNotFoundAndItsNumberNotGivenAgain) {
    enter({wish("f"), wish("g")});
    registry.at(2).removed = true;
    auto named = registry.named("2");
    ASSERT_FALSE(named);
    EXPECT_EQ(named.error().message, "probe 2 was removed");
    EXPECT_EQ(registry.present(), Numbers{1});
    EXPECT_EQ(enter({wish("h")}), Numbers{3});
}

TEST_F(RegistryTest, WhatCouldNotBeRegisteredLeavesNoGap) {
    enter({wish("f")});
    registry.take_back(registry.enter(set, {wish("g"), wish("h")}));
    EXPECT_EQ(enter({wish("i")}), Numbers{2});
}

TEST_F(RegistryTest, ProbesOfOursTakeNoNumberOfTheUsers) {
    auto ours = std::make_shared<ProbeSet>();
    ours->hidden = true;
    enter({wish("f")});
    Numbers enclosing = registry.enter(ours, {wish("around")});
    EXPECT_EQ(enter({wish("g")}), Numbers{2});
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
    Numbers refused = registry.enter(set, {wish("f"), wish("g")});
    refused.push_back(registry.enter(ours, {wish("around")}).front());
    registry.take_back(refused);
    EXPECT_TRUE(registry.present().empty());
    EXPECT_EQ(enter({wish("h")}), Numbers{1});
    EXPECT_EQ(registry.enter(ours, {wish("around")}).front(), refused.back());
}

TEST_F(RegistryTest, NobodysNumberChangesWhenEarlierOnesAreTakenBack) {
    Numbers refused = registry.enter(set, {wish("g")});
    EXPECT_EQ(enter({wish("h")}), Numbers{2}); // by a handler, meanwhile
    registry.take_back(refused);
    EXPECT_EQ(registry.present(), Numbers{2});
    EXPECT_EQ(registry.at(2).probe.spec.text, "h");
}

TEST_F(RegistryTest, AProbeIsOnWhenNothingSpeaksAgainstIt) {
    ProbeEntry &probe = registry.at(enter({wish("f")}).front());
    EXPECT_TRUE(registry.is_on(1));
    for (bool ProbeEntry::*against : {&ProbeEntry::enabled, &ProbeEntry::ready}) {
        probe.*against = false;
        EXPECT_FALSE(registry.is_on(1));
        probe.*against = true;
    }
    registry.switch_all(false);
    EXPECT_FALSE(registry.is_on(1));
    EXPECT_TRUE(probe.enabled);
    registry.switch_all(true);
    probe.removed = true;
    EXPECT_FALSE(registry.is_on(1));
}

} // namespace
} // namespace ktrace::probe
