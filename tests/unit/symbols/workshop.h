// Workshop: a folder in which a test makes the ELF files that it needs, with the compiler and binutils; gone
// afterwards.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "symbols/module.h"

namespace ktrace::symbols {

class Workshop {
  public:
    Workshop() {
        std::string pattern = std::filesystem::temp_directory_path() / "ktrace-test-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
    }
    ~Workshop() { std::filesystem::remove_all(folder_); }
    Workshop(const Workshop &) = delete;

    std::string path(const std::string &name) const { return folder_ / name; }

    /// Runs a shell command in the folder; the test fails where it does.
    void run(const std::string &command) const {
        int status = std::system(("cd '" + folder_.string() + "' && " + command).c_str());
        ASSERT_EQ(status, 0) << command;
    }
    void write(const std::string &name, const std::string &text) const {
        std::ofstream(folder_ / name, std::ios::binary) << text;
    }
    std::vector<char> read(const std::string &name) const {
        std::ifstream file(folder_ / name, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }
    /// Compiles a C (.c) or C++ (.cc) source text to `name`.
    void compile(const std::string &name, const std::string &text, const std::string &flags,
                 const std::string &language = "c") const {
        write(name + "." + language, text);
        run(std::string(language == "c" ? "gcc" : "g++") + " " + name + "." + language + " -o " + name + " " + flags);
    }

    std::shared_ptr<Module> open(const std::string &name) const {
        auto module = Module::open(path(name), path(name));
        EXPECT_TRUE(module) << module.error().message;
        return module ? *module : nullptr;
    }

  private:
    std::filesystem::path folder_;
};

} // namespace ktrace::symbols
