// Changes: fault injection: the values that a program changes in the stopped thread before it is resumed. eval only
// says so; the owner of the thread does it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ktrace::program {

struct Change {
    enum class Where : std::uint8_t {
        general,  // `offset` in Registers
        floating, // `offset` in FpRegisters
        memory,   // `address`
    };
    Where where = Where::general;
    std::uint8_t size = 8; // bytes of `bits`, from the low ones on
    std::uint16_t offset = 0;
    std::uint64_t address = 0;
    std::uint64_t bits = 0;
};

struct Changes {
    static constexpr std::size_t most = 16;
    std::array<Change, most> all;
    std::size_t count = 0;
    bool skips = false; // the function returns at once

    bool any() const { return count != 0 || skips; }
    void clear() { count = 0, skips = false; }
};

/// Where a value goes, as data.
struct Destination {
    enum class Kind : std::uint8_t { nowhere, general, floating, memory } kind = Kind::nowhere;
    std::uint8_t size = 8;
    std::uint16_t offset = 0;      // general, floating: of the register; memory: of the base register in Registers
    bool single = false;           // a float: its bits are those of a float, not of a double
    bool skips = false;            // and the function returns at once
    std::uint16_t unused = 0;      // no padding: an image holds it
    std::int64_t displacement = 0; // memory: from the base register
};

} // namespace ktrace::program
