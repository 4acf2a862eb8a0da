// The parts of resolve: what is asked, what is found so far, and one function for each form of SPEC. For this room's
// own resolve*.cc, suggest.cc and watch_spec.cc only.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "probe/resolve.h"

namespace ktrace::probe {

/// The request to resolve.
struct Request {
    const Spec &spec;
    Kind kind;
    std::span<const Loaded> modules;     // all of the process
    std::vector<const Loaded *> chosen;  // those that the spec means: all where it names no MODULE
    Memory *memory;                      // may be nullptr
    std::function<bool()> gives_up = {}; // may be empty
};

/// Gathers locations, each place once, and each inlined instance that begins there.
class Finding {
  public:
    /// Adds a location; false where it is there already.
    bool add(Location location);
    void add_resolver(Location location);
    /// A location of a function's own code is there.
    bool has(const Loaded &loaded, std::uint64_t vaddr) const {
        return seen_.contains({loaded.module.get(), vaddr, 0});
    }
    bool empty() const { return found_.locations.empty() && found_.ifunc_resolvers.empty(); }

    /// All that was found, in order of the modules and then of addresses.
    Resolved take(std::span<const Loaded> modules);
    Resolved &resolved() { return found_; }

  private:
    Resolved found_;
    std::set<std::tuple<const symbols::Module *, std::uint64_t, std::uint32_t>> seen_; // module, vaddr, instance
};

Result<Resolved> resolve_symbol(const Request &request);
Result<Resolved> resolve_line(const Request &request);
Result<Resolved> resolve_address(const Request &request);

/// The location of an address of a module: in the function that covers it, if one is known.
Location location_at(const Loaded &loaded, std::uint64_t vaddr);

/// Refuses a place in a restartable sequence, and one that is not the start of an instruction, as far as the function
/// around it is known. The error points at the spec's offset or address.
Status check_boundary(const Request &request, const Location &location);

/// Refuses an entry or return probe that is not on a function's first instruction.
Status check_entry(const Request &request, const Location &location);

/// The location at the spec's offset in a function (`module`, `symbol`, `function` and `function_end` are given).
/// Refused: behind its end, or not on an instruction boundary.
Result<Location> at_offset(const Request &request, Location function);

/// The names of debug information are looked for in the program, and in the libraries only if they are named: reading
/// all of a process's debug information would take seconds.
bool is_described_wanted(const Request &request, const Loaded &loaded);

/// The same of inlined functions, which have no offsets and versions.
bool has_inlined_wanted(const Request &request, const Loaded &loaded);

/// An implementation of an IFUNC.
struct Implementation {
    const Loaded *owner = nullptr; // the module that it lies in: the IFUNC's own, or the vdso
    std::uint64_t vaddr = 0;
    bool operator==(const Implementation &) const = default;
};

/// The implementations that the process uses of an IFUNC of `loaded`, from the slots that the dynamic linker or the
/// start-up code of a static program has filled. Empty: not resolved yet, or there is no process.
std::vector<Implementation> implementations(const Request &request, const Loaded &loaded, const symbols::Symbol &ifunc);

/// A sentence on the program, or the module that the spec means, where it is stripped; empty: it is not.
std::string stripped(const Request &request);

/// The error for a symbol that no chosen module has, with the nearest names.
Error unknown_symbol(const Request &request);

/// A loaded module that is spelled nearly like the spec's, which is not loaded: best one that has the symbol. Else the
/// only one that has it. Empty: there is none.
std::string near_module(const Request &request);

/// An error about the part of the spec that names the place (symbol, file or address), or its offset.
Error about_place(const Request &request, Error::Kind kind, std::string message, std::string hint = {});
Error about_offset(const Request &request, Error::Kind kind, std::string message, std::string hint = {});

/// `name`, `name and other`, `name, other and 3 more`: at most `most` of them.
std::string listed(const std::vector<std::string> &names, std::size_t most);
/// 0x1f
std::string hex(std::uint64_t value);
/// An offset as the user writes them: decimal where the spec has a decimal one, else hex.
std::string offset_text(const Request &request, std::uint64_t offset);

} // namespace ktrace::probe
