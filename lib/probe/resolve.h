// Resolve: a Spec and the modules of a process become Locations, the places in files where sites will be.
//
// Spec → Probe → Location → Attachment → Site: the third step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/addr.h"
#include "base/memory.h"
#include "base/result.h"
#include "probe/spec.h"
#include "symbols/module.h"

namespace ktrace::probe {

enum class Kind : char { probe = 'k', entry = 'j', ret = 'r', watch = 'w' };

/// A place in a file: survives ASLR, fork and exec.
struct Location {
    std::shared_ptr<symbols::Module> module; // nullptr: an address in no file (generated code)
    std::uint64_t vaddr = 0;                 // in the module's own addresses; an absolute one without a module
    std::string symbol;             // as users read it: demangled without parameters, `do_work`; empty: none known
    std::uint64_t offset = 0;       // from the symbol
    std::uint64_t function = 0;     // vaddr of the function's first instruction, 0: not known
    std::uint64_t function_end = 0; // behind its last byte
    std::uint32_t instance = 0;     // symbols::InlinedInstance, which has no return; several may begin at one place

    bool inlined() const { return instance != 0; }
};

/// A module as it is loaded in one process.
struct Loaded {
    std::shared_ptr<symbols::Module> module;
    std::uint64_t bias = 0; // address = vaddr + bias
    bool is_program = false;
};

/// The result of resolve.
struct Resolved {
    std::vector<Location> locations;       // in order of modules, addresses, instances; no doubles
    std::size_t inlined_left_out = 0;      // return probes: inlined instances that cannot be probed
    std::vector<std::string> notices;      // for standard error
    bool pending = false;                  // a MODULE was given and is not loaded
    std::string near_module;               // then: a loaded one that may be meant, should it be a typo; or empty
    std::vector<Location> ifunc_resolvers; // IFUNCs not resolved by the process yet: arm when these return
};

/// All the places that a spec means. `memory` reads the process (for GOT slots of IFUNCs, for instruction boundaries of
/// code that no file has); nullptr: a file is looked at, not a process. Errors: not_found (nearest names as a hint),
/// refused (not on an instruction boundary, no function's first instruction, a variable, …), usage (a symbol and an
/// address together), given_up (once `gives_up`, which is asked now and then, says so). Inlined instances are looked
/// for in the program and, where the spec names a MODULE, in that.
Result<Resolved> resolve(const Spec &spec, Kind kind, std::span<const Loaded> modules, Memory *memory,
                         const std::function<bool()> &gives_up = {});

/// Where a spec of an IFUNC is once the process has chosen: in the implementation at `vaddr` of a module, which is that
/// of its resolver, or the vdso. Errors: refused (the offset).
Result<Location> resolve_chosen(const Spec &spec, Kind kind, const Location &resolver,
                                const std::shared_ptr<symbols::Module> &module, std::uint64_t vaddr);

/// True where `module` (a path or base name, with or without version suffix: libc.so.6, libc) names this one; globs
/// too, and a symbolic link beside its file.
bool names_module(std::string_view wanted, const symbols::Module &module);

} // namespace ktrace::probe
