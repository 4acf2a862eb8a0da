// Programs for the tests of debug information (dwarf_program.h).
#include "dwarf_program.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/check.h"

namespace ktrace::symbols::test {

namespace {

struct Directory {
    std::string path;
    Directory() {
        char pattern[] = "/tmp/ktrace-dwarf-XXXXXX";
        const char *made = ::mkdtemp(pattern);
        KT_CHECK(made != nullptr);
        path = made;
    }
    ~Directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};

} // namespace

std::string Build::name() const {
    std::string text = compiler + "_dwarf" + std::to_string(version) + "_" + optimize.substr(1);
    return text;
}

const std::vector<std::string> &compilers() {
    static const std::vector<std::string> some = {"gcc"}, all = {"gcc", "clang"};
    return std::getenv("KTRACE_TEST_SLOW") != nullptr ? some : all;
}

std::vector<Build> builds_at(const std::string &optimize) {
    std::vector<Build> builds;
    for (const std::string &compiler : compilers())
        for (int version : {4, 5}) builds.push_back({compiler, version, optimize, ""});
    return builds;
}

std::vector<Build> all_builds() {
    auto builds = builds_at("-O0");
    for (const Build &build : builds_at("-O2")) builds.push_back(build);
    return builds;
}

const std::string &scratch_directory() {
    static Directory directory;
    return directory.path;
}

std::string shell(const std::string &command, int *status) {
    std::string output;
    FILE *pipe = ::popen(command.c_str(), "r");
    KT_CHECK(pipe != nullptr);
    char buffer[4096];
    while (std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, got);
    int ended = ::pclose(pipe);
    if (status != nullptr) *status = ended;
    return output;
}

Program Program::compile(const Build &build, const std::string &source, bool cplusplus) {
    static std::atomic<int> count{0};
    Program program;
    std::string base = scratch_directory() + "/p" + std::to_string(count++);
    program.path_ = base;
    program.source_path_ = base + (cplusplus ? ".cc" : ".c");
    std::ofstream(program.source_path_) << source;
    std::string driver = !cplusplus                  ? build.compiler
                         : build.compiler == "gcc"   ? "g++ -std=c++20"
                         : build.compiler == "clang" ? "clang++ -std=c++20"
                                                     : build.compiler;
    std::string command = "cd " + scratch_directory() + " && " + driver + " -w -g -gdwarf-" +
                          std::to_string(build.version) + " " + build.optimize + " " + build.extra + " -o " + base +
                          " " + program.source_path_ + " 2>&1";
    int status = 0;
    std::string output = shell(command, &status);
    if (status != 0) std::fprintf(stderr, "%s\n%s\n", command.c_str(), output.c_str());
    KT_CHECK(status == 0);
    auto dwarf = Dwarf::open(base);
    if (!dwarf) std::fprintf(stderr, "%s\n", dwarf.error().message.c_str());
    KT_CHECK(dwarf.has_value());
    program.dwarf_ = std::move(*dwarf);
    return program;
}

std::string Program::run() const { return shell(path_); }

std::uint64_t Program::symbol(const std::string &name) const {
    std::istringstream lines(shell("nm " + path_));
    for (std::string line; std::getline(lines, line);)
        if (line.size() > 19 && line.substr(19) == name) return std::strtoull(line.c_str(), nullptr, 16);
    return 0;
}

int line_of(const std::string &source, const std::string &marker) {
    auto at = source.find(marker);
    KT_CHECK(at != std::string::npos);
    return 1 + static_cast<int>(std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

} // namespace ktrace::symbols::test
