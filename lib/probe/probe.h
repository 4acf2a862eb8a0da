// Probe: what is wanted at all places that one SPEC means, as data, and the options of its command. cmd/ makes it of a
// command line, session/plugins of a plugin's registration.
//
// Spec → Probe → Location → Attachment → Site: the second step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "probe/resolve.h"
#include "probe/spec.h"

namespace ktrace::engine {
class HitHandler;
}

namespace ktrace::probe {

/// The options of a command that apply to all of its probes. EXPR are texts here; compile.h makes programs of them.
struct Actions {
    std::string condition;          // --if, empty: none
    std::optional<Spec> inside;     // --inside: only under calls of this function
    std::vector<std::string> print; // --print, in place of the arguments
    bool no_args = false;           // --no-args
    bool full = false;              // --full: values are not shortened
    /// --set-arg, --set-reg, --set-ret, --skip, --set-errno: `name` (an argument's number or name, a register) becomes
    /// `value`.
    struct Injection {
        enum class Kind : std::uint8_t { argument, reg, result, skip, error } kind = Kind::argument;
        std::string name;
        std::string value;
    };
    std::vector<Injection> injections;
    bool post = false; // --post
    std::vector<std::string> post_print;
    bool regs = false;
    int stack = -1; // --stack: frames, 0: all; -1: none
    enum class Aggregate : std::uint8_t { none, count, stats, hist } aggregate = Aggregate::none;
    std::string aggregate_of; // EXPR, empty: `duration` on return probes
    std::vector<std::string> by;
    bool silent = false; // --expect is all that there is: counts, and shows no table
    std::uint64_t every = 1;
    double chance = 1.0;
    std::optional<std::uint64_t> seed;
    std::optional<std::uint64_t> first;
    std::optional<std::uint32_t> maxactive;
};

/// The EXPR that is 1 where this one holds and 0 where it does not.
std::string truth_of(const std::string &expression);

/// The options of a probe that has some inside its quotes: those, and the command's of other names.
struct OwnOptions {
    Actions actions;
    std::string quoted;   // the whole text: SPEC and options
    std::size_t spec = 0; // how long the SPEC in it is

    /// `error`, pointing into the whole text where it points into an EXPR of these options, or into truth_of() one.
    Error pointing(Error error) const;
};

struct Probe {
    std::uint32_t number = 0; // from 1, in the order given
    Kind kind = Kind::probe;
    Spec spec;
    bool enabled = true;
    engine::HitHandler *handler = nullptr;       // runs instead of the set's actions; outlives the probe's registration
    std::optional<std::uint32_t> maxactive = {}; // instead of that of its set
    std::shared_ptr<const OwnOptions> own = {};  // instead of its set's options; nullptr: it has those
};

} // namespace ktrace::probe
