// Code: what is compiled for one location, while it is: for each moment the instructions of the machine. flatten()
// makes the Image of it that is run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "program/run/image.h"
#include "program/run/program.h"
#include "value/type.h"

namespace ktrace::program {

using Instrs = std::vector<Instr>;

/// As MomentImage.
struct MomentCode : MomentFlags {
    bool runs = false;
    bool writes_event = false;
    Instrs condition;
    std::vector<Instrs> key;
    Instrs value;
    std::vector<Instrs> injections;
    std::vector<Instrs> body;
};

struct Code {
    MomentCode at[moments];
    std::vector<std::string> constants;
    std::deque<value::Type> derived; // pointer types that only expressions have
    std::vector<Destination> destinations;
    std::size_t capture_fixed = 0;
    std::size_t capture_size = 0;
    std::optional<std::size_t> selection_at;
    std::uint32_t blobs = 0; // their ends (u32 each) lie at the start of the capture
    std::size_t payload_limit = max_value;

    MomentCode &moment(Moment m) { return at[static_cast<std::size_t>(m)]; }
};

/// The image of `code`: the bytes are equal where what is run is equal.
std::vector<std::byte> flatten(const Code &code);

} // namespace ktrace::program
