// The machine's instruction that asks for a change of the thread.
#include <cstring>

#include "program/run/floats.h"
#include "program/run/machine.h"

namespace ktrace::program {

/// A value that could not be read changes nothing.
bool Machine::inject(const Instr &instr) {
    const Slot &slot = top();
    Changes *changes = hit_.changes;
    if (broken_ || slot.state != Slot::State::ok || !changes || changes->count == Changes::most) return !broken_;
    auto destinations = image_[image_.header().destinations];
    if (instr.index >= destinations.size()) return false;
    const Destination &to = destinations[instr.index];
    changes->skips = changes->skips || to.skips;
    Change change;
    change.size = to.size;
    change.offset = to.offset;
    change.bits = to.single ? float_bits(slot.bits) : slot.bits;
    switch (to.kind) {
    case Destination::Kind::nowhere: return true;
    case Destination::Kind::general: change.where = Change::Where::general; break;
    case Destination::Kind::floating: change.where = Change::Where::floating; break;
    case Destination::Kind::memory: {
        std::uint64_t base;
        std::memcpy(&base, reinterpret_cast<const std::byte *>(&hit_.registers) + to.offset, sizeof base);
        change.where = Change::Where::memory;
        change.address = base + static_cast<std::uint64_t>(to.displacement);
        break;
    }
    }
    changes->all[changes->count++] = change;
    return true;
}

} // namespace ktrace::program
