// Plans over snapshots that are made up: what is installed, what waits, what is refused; and that planning changes
// nothing.
#include "arming/plan.h"

#include <algorithm>

#include "../symbols/workshop.h"
#include "arming/internal_sites.h"
#include "engine/calls/unwinding.h"
#include "lifecycle/events.h"

namespace ktrace::arming {
namespace {

using probe::Kind;
using symbols::Workshop;

constexpr const char *source = R"(
int counter;
__attribute__((noinline)) int work(int n) { return n * 3 + counter; }
__attribute__((noinline)) int other(int n) { return work(n) + 1; }
int _Unwind_RaiseException(void *object) { return object != 0; }
static int fast(int n) { return n; }
void *choose(void) { return fast; }
int chosen(int n) __attribute__((ifunc("choose")));
int main(int argc, char **argv) { (void)argv; return other(argc) + chosen(argc); }
)";

constexpr std::uint64_t bias = 0x7000'0000;

/// A process's memory: the module as its file has it; no slot of an indirect function is filled.
struct FileMemory : Memory {
    std::shared_ptr<symbols::Module> module;
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        auto bytes = module->bytes_at(at.value - bias, into.size());
        std::copy(bytes.begin(), bytes.end(), into.begin());
        return bytes.size();
    }
    bool write(VirtAddr, std::span<const std::byte>) override {
        ADD_FAILURE() << "a plan writes";
        return false;
    }
};

class Plans : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        workshop = new Workshop;
        workshop->compile("program", source, "-O1 -g -fno-pie -no-pie");
    }
    static void TearDownTestSuite() { delete workshop; }

    Plans() {
        memory.module = workshop->open("program");
        loaded.module = memory.module;
        loaded.bias = bias;
        loaded.start = VirtAddr{bias};
        loaded.end = VirtAddr{bias + 0x1000'0000};
        loaded.is_program = true;
        mapping.start = loaded.start;
        mapping.end = loaded.end;
        mapping.readable = mapping.executable = true;
    }

    Snapshot now() {
        return {.trace = trace,
                .space = space,
                .installed = installed,
                .pid = Pid{1},
                .modules = {loaded},
                .maps = {mapping},
                .memory = memory};
    }

    std::uint32_t add(const std::string &spec, Kind kind, bool allow_missing = false) {
        auto set = std::make_shared<probe::ProbeSet>();
        set->allow_missing = allow_missing;
        return trace.registry.enter(set, {{0, kind, *probe::parse_spec(spec)}}).front();
    }

    VirtAddr address_of(const char *function) { return VirtAddr{memory.module->named(function).at(0)->vaddr + bias}; }

    static std::vector<std::string> names(const InstallPlan &plan) {
        std::vector<std::string> names;
        for (const PlannedLocation &each : plan.locations) names.push_back(each.location.symbol);
        std::sort(names.begin(), names.end());
        return names;
    }

    /// The addresses of a plan's internal breakpoints of one purpose.
    static std::vector<VirtAddr> of(const InstallPlan &plan, const engine::InternalPurpose &purpose) {
        std::vector<VirtAddr> found;
        for (const auto &internal : plan.internal)
            if (internal->purpose == &purpose) found.push_back(internal->at);
        return found;
    }

    static inline Workshop *workshop = nullptr;
    trace::Config config;
    trace::Voice voice;
    trace::Trace trace{config, voice, lifecycle::event_handlers};
    engine::AddressSpaceState space;
    trace::Arming installed;
    FileMemory memory;
    target::LoadedModule loaded;
    os::Mapping mapping;
    Remarks remarks;
};

struct Row {
    const char *spec;
    Kind kind;
    bool allow_missing;
    Missing missing;
    std::vector<std::string> locations; // of the plan
    const char *error;                  // part of it; nullptr: there is a plan
    const char *notice;                 // part of the only one; nullptr: there is none
    bool expected;                      // it can be placed, or waits
    bool nowhere;                       // why it was not found is remembered
};

TEST_F(Plans, SayWhatIsInstalledWhatWaitsAndWhatIsRefused) {
    const auto wait = Missing::wait, refuse = Missing::refuse;
    const Row rows[] = {
        {"work", Kind::probe, false, refuse, {"work"}, nullptr, nullptr, true, false},
        {"work", Kind::ret, false, refuse, {"work"}, nullptr, nullptr, true, false},
        {"*othe*", Kind::entry, false, refuse, {"other"}, nullptr, nullptr, true, false},
        {"missing", Kind::probe, false, wait, {}, nullptr, nullptr, false, true},
        {"missing", Kind::probe, false, refuse, {}, "missing", nullptr, false, true},
        {"missing", Kind::probe, true, refuse, {}, nullptr, "missing", false, true},
        {"libx:f", Kind::probe, false, refuse, {}, nullptr, "libx:f waits for libx to be loaded", true, false},
        {"counter", Kind::probe, false, wait, {}, "counter", nullptr, false, true},
        {"work+1", Kind::entry, false, refuse, {}, "an entry probe", nullptr, false, true},
    };
    for (const Row &row : rows) {
        SCOPED_TRACE(std::string(row.spec) + (row.missing == wait ? " wait" : " refuse"));
        remarks = {};
        const std::uint32_t number = add(row.spec, row.kind, row.allow_missing);
        auto made = plan(now(), {number}, row.missing, remarks);
        ASSERT_EQ(made.has_value(), row.error == nullptr) << (made ? "" : made.error().message);
        if (made)
            EXPECT_EQ(names(*made), row.locations);
        else
            EXPECT_NE(made.error().message.find(row.error), std::string::npos) << made.error().message;
        ASSERT_EQ(remarks.notices.size(), row.notice ? 1U : 0U);
        if (row.notice) {
            EXPECT_NE(remarks.notices[0].find(row.notice), std::string::npos) << remarks.notices[0];
        }
        EXPECT_EQ(remarks.expected.contains(number), row.expected);
        EXPECT_EQ(remarks.nowhere.contains(number), row.nowhere);
    }
}

TEST_F(Plans, ChangeNothing) {
    const std::uint32_t found = add("work", Kind::ret), lost = add("missing", Kind::probe);
    ASSERT_TRUE(plan(now(), {found, lost}, Missing::wait, remarks));
    EXPECT_TRUE(trace.installed.locations.empty());
    EXPECT_TRUE(trace.output.told.empty());
    EXPECT_TRUE(space.sites.empty());
    EXPECT_TRUE(trace.installed.armings.empty());
    EXPECT_EQ(trace.registry.at(lost).why_nowhere, "");
    EXPECT_FALSE(trace.registry.at(found).set->compiled);
    EXPECT_TRUE(remarks.compiled.contains(trace.registry.at(found).set.get()));
}

TEST_F(Plans, LeaveOutWhatIsInstalled) {
    const std::uint32_t number = add("work", Kind::entry), another = add("work", Kind::entry);
    auto counted = std::make_unique<trace::CountedLocation>();
    counted->probe = number;
    trace.installed.locations.push_back(std::move(counted));
    engine::Attachment attachment;
    auto site = std::make_unique<engine::Site>();
    site->at = address_of("work");
    site->armed = true;
    site->attachments.push_back(&attachment);
    site->plan.length = 1;
    space.sites[site->at] = std::move(site);
    auto made = plan(now(), {number, another}, Missing::refuse, remarks);
    ASSERT_TRUE(made);
    ASSERT_EQ(made->locations.size(), 1U);
    EXPECT_EQ(made->locations[0].probe, another);
    attachment.dismissed = true;
    made = plan(now(), {number, another}, Missing::refuse, remarks);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->locations.size(), 2U);
}

TEST_F(Plans, RefuseMemoryThatIsSharedOrNotExecutable) {
    struct {
        bool executable, shared;
        const char *why;
    } const rows[] = {{true, false, nullptr}, {false, false, "not in executable memory"}, {true, true, "MAP_SHARED"}};
    const std::uint32_t strict = add("work", Kind::probe), lenient = add("work", Kind::probe, true);
    for (const auto &row : rows) {
        SCOPED_TRACE(row.why ? row.why : "allowed");
        mapping.executable = row.executable;
        mapping.shared = row.shared;
        remarks = {};
        auto made = plan(now(), {strict}, Missing::wait, remarks);
        ASSERT_EQ(made.has_value(), row.why == nullptr);
        if (row.why) {
            EXPECT_NE(made.error().message.find(row.why), std::string::npos) << made.error().message;
        }
        made = plan(now(), {lenient}, Missing::wait, remarks);
        ASSERT_TRUE(made);
        EXPECT_EQ(made->locations.size(), row.why ? 0U : 1U);
        ASSERT_EQ(remarks.notices.size(), row.why ? 1U : 0U);
        if (row.why) {
            EXPECT_NE(remarks.notices[0].find(row.why), std::string::npos) << remarks.notices[0];
        }
    }
}

TEST_F(Plans, WatchUnwindersForReturnProbesOnceAModule) {
    const std::uint32_t entry = add("work", Kind::entry), ret = add("work", Kind::ret);
    auto made = plan(now(), {entry}, Missing::refuse, remarks);
    ASSERT_TRUE(made);
    EXPECT_TRUE(of(*made, engine::unwinds).empty());
    made = plan(now(), {ret}, Missing::refuse, remarks);
    ASSERT_TRUE(made);
    EXPECT_EQ(of(*made, engine::unwinds), std::vector{address_of("_Unwind_RaiseException")});
    EXPECT_EQ(made->unwinders, std::vector{bias});
    installed.unwinders.insert(bias);
    made = plan(now(), {ret}, Missing::refuse, remarks);
    ASSERT_TRUE(made);
    EXPECT_TRUE(of(*made, engine::unwinds).empty());
}

TEST_F(Plans, WaitForAResolverOnce) {
    const std::uint32_t number = add("chosen", Kind::entry);
    auto made = plan(now(), {number}, Missing::refuse, remarks);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(made->locations.empty());
    ASSERT_EQ(made->ifuncs.size(), 1U);
    EXPECT_EQ(made->ifuncs[0].at(), address_of("choose"));
    EXPECT_EQ(of(*made, resolves_ifunc), std::vector{address_of("choose")});
    EXPECT_TRUE(remarks.expected.contains(number));
    installed.ifuncs = made->ifuncs;
    made = plan(now(), {number}, Missing::refuse, remarks);
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->empty());
}

} // namespace
} // namespace ktrace::arming
