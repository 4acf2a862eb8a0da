// The list of threads, without names for its addresses.
#include "sample/thread_list.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace ktrace::sample {
namespace {

class Nameless final : public output::Symbolizer {
  public:
    std::vector<output::NamedFrame> name(std::int32_t, std::uint64_t address, bool) override {
        output::NamedFrame frame;
        frame.address = address;
        return {frame};
    }
};

ThreadLook thread(pid_t tid, const char *comm, Stack stack) {
    ThreadLook look;
    look.pid = Pid{10};
    look.tid = Tid{tid};
    look.comm = comm;
    look.state = 'S';
    look.stack = std::move(stack);
    return look;
}

TEST(ThreadList, EqualStacksStandOnce) {
    Nameless symbolizer;
    EXPECT_EQ(threads_text({thread(10, "main", {1, 2}), thread(11, "a", {3}), thread(12, "b", {1, 2})}, symbolizer),
              "10 main S\n12 b S\n    #0  0x1\n    #1  0x2\n11 a S\n    #0  0x3\n");
}

TEST(ThreadList, ThoseOfTwoProcessesStandApart) {
    Nameless symbolizer;
    auto other = thread(20, "main", {1});
    other.pid = Pid{20};
    EXPECT_EQ(threads_text({thread(10, "main", {1}), other}, symbolizer),
              "10 main S\n    #0  0x1\n20 main S\n    #0  0x1\n");
}

TEST(ThreadList, AllThatIsKnown) {
    Nameless symbolizer;
    auto look = thread(11, "bio\n", {1});
    look.time_ns = 5;
    look.waited_ns = 1'234'000'000;
    look.call = os::TaskPlace{};
    look.call->syscall = SYS_read;
    look.call->arguments[2] = 512;
    look.why_not = "it runs";
    EXPECT_EQ(threads_text({look}, symbolizer), "11 bio\\n S 1.234 s read(0, NULL, 512)\n    #0  0x1\n    (it runs)\n");
    EXPECT_EQ(threads_json({look}, symbolizer),
              R"({"type":"thread","time_ns":5,"pid":10,"tid":11,"comm":"bio\n","state":"S","waited_ns":1234000000,)"
              R"("syscall":"read","args":[0,"0x0",512],"stack":[{"addr":"0x1","inlined":false}],"reason":"it runs"})"
              "\n");
}

} // namespace
} // namespace ktrace::sample
