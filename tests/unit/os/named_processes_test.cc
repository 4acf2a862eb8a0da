// Which processes a name means: a child of the test's own gives itself one.
#include "os/proc/named_processes.h"

#include <algorithm>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ktrace::os {
namespace {

/// A child whose comm is `name`; it ends with this object.
class Child {
  public:
    explicit Child(const char *name) {
        int ready[2] = {};
        EXPECT_EQ(::pipe(ready), 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::prctl(PR_SET_NAME, name);
            static_cast<void>(!::write(ready[1], "", 1));
            while (true) ::pause();
        }
        char byte = 0;
        EXPECT_EQ(::read(ready[0], &byte, 1), 1);
        ::close(ready[0]);
        ::close(ready[1]);
    }
    ~Child() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Child(const Child &) = delete;
    Pid pid() const { return Pid{pid_}; }
    void end() const {
        ::kill(pid_, SIGKILL);
        siginfo_t info = {};
        ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
    }

  private:
    pid_t pid_ = 0;
};

bool holds(const std::vector<Pid> &pids, Pid pid) { return std::find(pids.begin(), pids.end(), pid) != pids.end(); }

TEST(NamedProcesses, AreAllOfThatName) {
    Child first("kt unique"), second("kt unique"), other("kt uniquer");
    std::vector<Pid> both{first.pid(), second.pid()};
    std::sort(both.begin(), both.end());
    EXPECT_EQ(processes_named("kt unique").own, both);
    EXPECT_EQ(processes_named("kt uniq").own, std::vector<Pid>());
    EXPECT_TRUE(processes_named("kt unique").others.empty());
}

TEST(NamedProcesses, AreThoseOfTheExecutable) {
    Child child("kt renamed");
    EXPECT_TRUE(holds(processes_named("unit_tests").own, child.pid()));
    EXPECT_FALSE(holds(processes_named("unit_test").own, child.pid()));
}

TEST(NamedProcesses, AreNeitherThisOneNorAnyThatHasEnded) {
    Child child("kt ended");
    EXPECT_FALSE(holds(processes_named("unit_tests").own, Pid{::getpid()}));
    child.end();
    EXPECT_TRUE(processes_named("kt ended").own.empty());
}

TEST(NamedProcesses, AreListedOnceForEachName) {
    Child first("kt listed"), second("kt listed");
    const std::vector<std::string> names = process_names();
    EXPECT_EQ(std::count(names.begin(), names.end(), "kt listed"), 1);
}

} // namespace
} // namespace ktrace::os
