// Programs for the tests of debug information, compiled at test time: sources, compilers and flags in, an ELF file and
// what it prints out. Files live in one directory that ends with the test program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "symbols/dwarf/dwarf.h"

namespace ktrace::symbols::test {

/// One way of compiling.
struct Build {
    std::string compiler; // gcc, clang
    int version = 5;      // of DWARF
    std::string optimize; // -O0
    std::string extra;
    std::string name() const; // for parameterized tests: gcc_dwarf5_O0
};

/// gcc and clang; in an emulated machine, which has no other, gcc alone.
const std::vector<std::string> &compilers();
/// All of them, DWARF 4 and 5, -O0 and -O2.
std::vector<Build> all_builds();
/// The same at one level.
std::vector<Build> builds_at(const std::string &optimize);

class Program {
  public:
    /// Compiles C (or with `cplusplus` C++20); KT_CHECKs that it worked.
    static Program compile(const Build &build, const std::string &source, bool cplusplus = false);

    const std::string &path() const { return path_; }
    const std::string &source_path() const { return source_path_; }
    Dwarf &dwarf() const { return *dwarf_; }

    /// Its standard output.
    std::string run() const;
    /// vaddr of a symbol, by nm; 0 where it has none.
    std::uint64_t symbol(const std::string &name) const;

  private:
    std::string path_, source_path_;
    std::unique_ptr<Dwarf> dwarf_;
};

/// A directory of this test program's own, removed at its end.
const std::string &scratch_directory();
/// Runs a shell command; its output. `status` takes its wait status.
std::string shell(const std::string &command, int *status = nullptr);
/// Line number (from 1) of the line of `source` that holds `marker`.
int line_of(const std::string &source, const std::string &marker);

} // namespace ktrace::symbols::test
