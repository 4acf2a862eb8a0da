// The modules (program, libraries, vdso) that are mapped in a process, each opened once for all processes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/memory.h"
#include "os/proc/procfs.h"
#include "symbols/module.h"

namespace ktrace::target {

/// A module where one process has it.
struct LoadedModule {
    std::shared_ptr<symbols::Module> module;
    std::uint64_t bias = 0; // address in the process = vaddr in the file + bias
    VirtAddr start, end;    // all of its mappings lie in [start, end)
    bool is_program = false;
    std::string file; // which one is mapped: device, inode, path

    /// True in its segments. Between them the process can have memory of its own: generated code, on arm64, where the
    /// kernel and the loader leave gaps.
    [[nodiscard]] bool holds(VirtAddr at) const;
};

/// Modules by their files on disk, so that ten processes of one program open it once.
class ModuleCache {
  public:
    /// The modules with executable mappings, in order of address; the program first. `before`: the last answer for the
    /// process: a module that is still mapped is the same, though its file may be another. `memory` reads the vdso.
    /// Files that cannot be opened are listed in `unreadable` (shown path: why) and left out.
    std::vector<LoadedModule> modules_of(Pid pid, const std::vector<os::Mapping> &maps,
                                         const std::vector<LoadedModule> &before, Memory &memory,
                                         std::vector<std::string> &unreadable);

  private:
    std::optional<LoadedModule> moved_into_memory(Pid pid, const os::Mapping &file, const os::Mapping &code,
                                                  const std::vector<LoadedModule> &before, Memory &memory);
    std::shared_ptr<symbols::Module> open(Pid pid, const os::Mapping &mapping, std::string &why);
    std::shared_ptr<symbols::Module> vdso(std::vector<std::byte> image);
    std::unordered_map<std::string, std::shared_ptr<symbols::Module>> modules_;
    std::vector<std::shared_ptr<symbols::Module>> vdsos_;
};

/// The module that holds an address.
const LoadedModule *module_at(const std::vector<LoadedModule> &modules, VirtAddr at);

} // namespace ktrace::target
