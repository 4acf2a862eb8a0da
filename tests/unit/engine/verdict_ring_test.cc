// The ring of verdicts: what a failed KT_CHECK shows of the last stops.
#include "engine/space/verdict_ring.h"

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "engine/hit/dispatch.h"

namespace ktrace::engine {
namespace {

using Kind = os::Stop::Kind;

std::string line(const VerdictRing &ring, std::uint64_t number) {
    char room[VerdictRing::longest_line];
    return ring.line(number, room);
}

TEST(VerdictRing, ALineIsStopVerdictResume) {
    VerdictRing ring;
    const auto hit = ring.note({Tid{42}, Kind::signal, SIGTRAP}, VirtAddr{0x401136}, Verdict::hit);
    EXPECT_EQ(line(ring, hit), "42 signal TRAP 0x401136 → hit → -");
    ring.note_resume(hit, os::Resume::step, 0);
    EXPECT_EQ(line(ring, hit), "42 signal TRAP 0x401136 → hit → step");
    const auto term = ring.note({Tid{43}, Kind::signal, SIGTERM}, VirtAddr{0x10}, Verdict::deliver);
    ring.note_resume(term, os::Resume::run, SIGTERM);
    EXPECT_EQ(line(ring, term), "43 signal TERM 0x10 → deliver → run TERM");
    const auto real_time = ring.note({Tid{43}, Kind::signal, 40}, VirtAddr{0x10}, Verdict::deliver);
    EXPECT_EQ(line(ring, real_time), "43 signal 40 0x10 → deliver → -");
    EXPECT_EQ(line(ring, ring.note({Tid{43}, Kind::exited, 0, 7}, {}, Verdict::ended)), "43 exited 7 - → ended → -");
}

TEST(VerdictRing, AResumeIsThatOfItsOwnStop) {
    VerdictRing ring;
    const auto first = ring.note({Tid{1}, Kind::started}, {}, Verdict::go_on);
    ring.note_resume(first, os::Resume::run, 0);
    ring.note_resume(first, os::Resume::step, 0); // of a stop that was not noted
    EXPECT_EQ(line(ring, first), "1 started - → go_on → run");
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < VerdictRing::size; i++)
        last = ring.note({Tid{2}, Kind::group}, {}, Verdict::group_stop);
    ring.note_resume(first, os::Resume::listen, 0); // its place is another one's now
    ring.note_resume(0, os::Resume::listen, 0);
    EXPECT_EQ(line(ring, last), "2 group - → group_stop → -");
}

TEST(VerdictRing, AFailedCheckShowsTheLastThousand) {
    Engine engine;
    for (pid_t tid = 1; tid <= 1002; tid++) dispatch(engine, {Tid{tid}, Kind::exited, 0, 3});
    const char *shown = "internal error: engine.stops == 0 does not hold .*\n"
                        "ktrace: the last 1000 stops:\n"
                        "3 exited 3 - → ended → -\n"
                        "4 exited 3 - → ended → -\n"
                        "(.*\n)*"
                        "1002 exited 3 - → ended → -\n$";
    EXPECT_DEATH(KT_CHECK(engine.stops == 0), shown);
}

TEST(VerdictRing, AnEngineThatIsGoneShowsNothing) {
    { Engine before; }
    Engine engine;
    dispatch(engine, {Tid{5}, Kind::killed, 0, SIGKILL});
    { Engine after; }
    EXPECT_DEATH(KT_CHECK(false), "^[^\n]*internal error[^\n]*\nktrace: the last 1 stops:\n5 killed KILL [^\n]*\n$");
}

} // namespace
} // namespace ktrace::engine
