// Functions: where the functions of an ELF file begin and end, and where the calls in them return to.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbols/elf/elf.h"
#include "symbols/module.h"

namespace ktrace::tools {

struct Function {
    std::uint64_t start = 0, end = 0;
    std::uint64_t padding_end = 0; // up to here lies nothing else that is known
};

class File {
  public:
    /// Errors: what symbols::Module::open has.
    static Result<File> open(const std::string &path);

    const symbols::Module &module() const { return *module_; }
    /// The file's bytes from an address on, as far as its segment has them.
    std::span<const std::byte> code(std::uint64_t vaddr, std::uint64_t size) const { return elf_->at(vaddr, size); }
    bool is_library() const;
    /// The addresses that its segments take.
    Function extent() const;

    /// By symbols and frame descriptions, in order of addresses. Parts that the compiler split off are none where a
    /// symbol shows that they are parts.
    std::vector<Function> functions() const;
    /// The addresses behind the calls in a function, without those at its end.
    std::vector<std::uint64_t> return_sites(const Function &function) const;

  private:
    void add_symbols(std::vector<Function> &all) const;
    void add_frames(std::vector<Function> &all) const;

    std::shared_ptr<symbols::Module> module_;
    std::shared_ptr<symbols::ElfFile> elf_;
};

} // namespace ktrace::tools
