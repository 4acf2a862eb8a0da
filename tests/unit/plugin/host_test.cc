// The plugin host without a tracee: this process is the target whose memory its handlers see, and answers what it asks.
#include <cstring>
#include <functional>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../symbols/workshop.h"
#include "arch/host.h"
#include "plugin/channel.h"
#include "plugin/mirrored.h"
#include "plugin/places.h"
#include "plugin/window.h"

namespace ktrace::plugin {
namespace {

const char *const c_source = R"(
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>
#include <unistd.h>
static unsigned long at;
module_param(at, ulong, 0);
static char *how = "";
module_param(how, charp, 0);
static int pre(struct kprobe *p, struct pt_regs *regs)
{
    volatile long *page = (long *)at, *next = (long *)(at + 4096);
    long seen = page[0]; /* from here on it is known to run */
    if (!strcmp(how, "sum")) page[1] = seen + page[0] + page[511] + next[0];
    if (!strcmp(how, "write")) { page[1] = seen; seen = next[0]; page[2] = seen; }
    if (!strcmp(how, "move")) { instruction_pointer_set(regs, 0x1234); return 1; }
    if (!strcmp(how, "fault")) *(volatile char *)8 = 1;
    if (!strcmp(how, "loop")) for (;;) ;
    if (!strcmp(how, "exit")) _exit(0);
    return 0;
}
static struct kprobe probe = { .addr = (kprobe_opcode_t *)0x1000, .pre_handler = pre };
static int __init start(void) { return register_kprobe(&probe); }
static void __exit stop(void) { unregister_kprobe(&probe); }
module_init(start)
module_exit(stop)
)";

const char *const cxx_source = R"(
#include <stdexcept>
#include <linux/kprobes.h>
#include <linux/module.h>
static int pre(struct kprobe *, struct pt_regs *) { throw std::runtime_error("no such thing"); }
static struct kprobe probe;
static int start() { probe.addr = (kprobe_opcode_t *)0x1000; probe.pre_handler = pre; return register_kprobe(&probe); }
module_init(start)
)";

/// Three pages of ours: two that may be written, one that may only be read.
class Pages {
  public:
    Pages() : memory_(::mmap(nullptr, 3 * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        ::mprotect(static_cast<char *>(memory_) + 2 * page_size, page_size, PROT_READ);
    }
    ~Pages() { ::munmap(memory_, 3 * page_size); }
    Pages(const Pages &) = delete;
    std::uint64_t address(int page) const { return reinterpret_cast<std::uint64_t>(memory_) + page * page_size; }
    long &at(int page, int index) { return reinterpret_cast<long *>(address(page))[index]; }

  private:
    void *memory_;
};

class PluginHost : public testing::Test {
  protected:
    void SetUp() override {
        process_.pid = Pid{::getpid()};
        auto space = target::AddressSpace::open(process_.pid);
        ASSERT_TRUE(space) << space.error().message;
        process_.space = std::move(*space);
        auto maps = os::read_maps(process_.pid);
        ASSERT_TRUE(maps);
        process_.maps = *maps;
        for (unsigned attempt = 0; !channel_ && attempt < window_attempts; attempt++)
            if (auto window = choose_window(*maps, attempt))
                if (auto channel = Channel::start(*window)) channel_ = std::move(*channel);
        ASSERT_TRUE(channel_);
        mirrored_.emplace(*channel_);
    }

    void build(const std::string &text, const std::string &language) {
        auto include = include_folder();
        ASSERT_TRUE(include) << include.error().message;
        workshop_.compile("plugin.so", text, "-shared -fPIC -DKBUILD_MODNAME='\"test\"' -isystem '" + *include + "'",
                          language);
    }

    /// Loads the plugin and lets it register its probe.
    void load(const std::string &how, int page = 0) {
        if (!std::filesystem::exists(workshop_.path("plugin.so"))) build(c_source, "c");
        std::string path = workshop_.path("plugin.so");
        std::string parameters = how.empty() ? "" : "how=" + how + " at=" + std::to_string(pages_.address(page));
        std::memcpy(wire().bulk, path.c_str(), path.size() + 1);
        std::memcpy(wire().bulk + path.size() + 1, parameters.c_str(), parameters.size() + 1);
        ASSERT_TRUE(call(Call::load));
        ASSERT_EQ(wire().result, 0) << wire().text;
        ASSERT_TRUE(call(Call::init));
        ASSERT_EQ(wire().result, 0);
        ASSERT_EQ(wishes_, 1U);
        requests_.clear();
    }

    /// Runs a Call, and answers what the host asks meanwhile. False: the host has ended.
    bool call(Call which) {
        constexpr std::uint64_t patience_ns = 20'000'000, limit_ns = 60'000'000'000;
        bool late = false;
        wire().pid = wire().tid = process_.pid.value;
        channel_->hand_over(which);
        while (true) {
            bool may_loop = loops_ && !late && !requests_.empty();
            Allowance allowance{may_loop ? patience_ns : limit_ns, 0, {}};
            if (!channel_->wait(allowance)) {
                if (channel_->dead() || !may_loop) return false;
                late = true;
                channel_->tell_late();
                continue;
            }
            auto request = static_cast<Request>(wire().kind);
            if (request == Request::done) break;
            requests_.push_back(request);
            answer(request);
            channel_->hand_over(Call::answer);
        }
        mirrored_->write_back(process_);
        return true;
    }

    /// A hit of its probe.
    bool hit() {
        wire().probe = probe_;
        std::memset(wire().registers, 0, sizeof wire().registers);
        return call(Call::pre);
    }

    void answer(Request request) {
        VirtAddr address{wire().address};
        wire().result = -1;
        switch (request) {
        case Request::page:
            if (meanwhile_) meanwhile_(address);
            if (auto number = mirrored_->bring(process_, address)) wire().result = static_cast<std::int64_t>(*number);
            break;
        case Request::write_page: wire().result = mirrored_->allow_writing(process_, address) ? 0 : -1; break;
        case Request::add: {
            ProbeWish wish;
            std::memcpy(&wish, wire().bulk, sizeof wish);
            probe_ = wish.probe;
            wishes_ += wire().count;
            std::memcpy(wire().bulk, &wish.address, sizeof wish.address); // where it is
            wire().result = 0;
            break;
        }
        default: wire().result = 0;
        }
    }

    std::size_t asked(Request request) const {
        return static_cast<std::size_t>(std::count(requests_.begin(), requests_.end(), request));
    }
    Wire &wire() { return channel_->wire(); }

    symbols::Workshop workshop_;
    Pages pages_;
    target::Process process_;
    std::unique_ptr<Channel> channel_;
    std::optional<Mirrored> mirrored_;
    std::vector<Request> requests_;
    std::function<void(VirtAddr)> meanwhile_; // before a page is read
    bool loops_ = false;                      // the handler, once it has asked for something
    std::uint32_t probe_ = 0;
    std::size_t wishes_ = 0;
};

TEST_F(PluginHost, BringsAPageOnceAtItsFirstTouch) {
    load("sum");
    pages_.at(0, 0) = 5;
    pages_.at(0, 511) = 30;
    pages_.at(1, 0) = 200;
    ASSERT_TRUE(hit());
    EXPECT_EQ(wire().ended, Ended::returned);
    EXPECT_EQ(pages_.at(0, 1), 5 + 5 + 30 + 200);
    EXPECT_EQ(asked(Request::page), 2U);
    EXPECT_EQ(asked(Request::write_page), 1U);
}

TEST_F(PluginHost, KeepsNoPageFromOneCallToTheNext) {
    load("sum");
    for (long value : {1, 10, 100}) {
        pages_.at(0, 0) = value;
        ASSERT_TRUE(hit());
        EXPECT_EQ(pages_.at(0, 1), 2 * value);
    }
    EXPECT_EQ(asked(Request::page), 6U);
}

TEST_F(PluginHost, WritesBackNoMoreThanWasWritten) {
    load("write");
    pages_.at(0, 0) = 7;
    pages_.at(0, 3) = 1;
    meanwhile_ = [this](VirtAddr page) { // another thread of the target, between two writes of the handler
        if (page.value == pages_.address(1)) pages_.at(0, 3) = 99, pages_.at(1, 0) = 8;
    };
    ASSERT_TRUE(hit());
    EXPECT_EQ(pages_.at(0, 1), 7);
    EXPECT_EQ(pages_.at(0, 2), 8);
    EXPECT_EQ(pages_.at(0, 3), 99);
}

TEST_F(PluginHost, WritesNothingWhereTheTargetMayNot) {
    load("write", 2);
    ASSERT_TRUE(hit());
    EXPECT_EQ(wire().ended, Ended::faulted);
    EXPECT_EQ(pages_.at(2, 1), 0);
}

TEST_F(PluginHost, TellsThatTheHandlerHasSetThePc) {
    load("move");
    ASSERT_TRUE(hit());
    EXPECT_EQ(wire().result, 1);
    arch::Host::Registers registers;
    std::memcpy(&registers, wire().registers, sizeof registers);
    EXPECT_EQ(arch::Host::pc(registers).value, 0x1234U);
}

TEST_F(PluginHost, GoesOnAfterAHandlerThatFaults) {
    load("fault");
    for (int i = 0; i < 3; i++) {
        ASSERT_TRUE(hit());
        EXPECT_EQ(wire().ended, Ended::faulted);
        EXPECT_EQ(std::string(wire().text).rfind("SIGSEGV at 0x8", 0), 0U) << wire().text;
    }
}

TEST_F(PluginHost, EndsAHandlerThatLoops) {
    load("loop");
    loops_ = true;
    for (int i = 0; i < 3; i++) {
        requests_.clear();
        ASSERT_TRUE(hit());
        EXPECT_EQ(wire().ended, Ended::late);
    }
}

TEST_F(PluginHost, CatchesWhatAHandlerThrows) {
    build(cxx_source, "cc");
    load("");
    for (int i = 0; i < 3; i++) {
        ASSERT_TRUE(hit());
        EXPECT_EQ(wire().ended, Ended::threw);
        EXPECT_STREQ(wire().text, "no such thing");
    }
}

TEST_F(PluginHost, IsSeenToEnd) {
    load("exit");
    EXPECT_FALSE(hit());
    EXPECT_TRUE(channel_->dead());
}

} // namespace
} // namespace ktrace::plugin
