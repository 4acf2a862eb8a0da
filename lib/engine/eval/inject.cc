#include "engine/eval/inject.h"

#include <cstring>
#include <span>

namespace ktrace::engine {

using arch::Host;
using program::Change;

bool make_changes(Process &process, const program::Changes &changes, os::Stopped &stopped) {
    bool moved = false;
    for (const Change &change : std::span(changes.all).first(changes.count)) {
        switch (change.where) {
        case Change::Where::general: {
            Host::Registers &registers = stopped.change_registers();
            VirtAddr before = Host::pc(registers);
            std::memcpy(reinterpret_cast<std::byte *>(&registers) + change.offset, &change.bits, change.size);
            moved = moved || Host::pc(registers) != before;
            break;
        }
        case Change::Where::floating:
            if (Host::FpRegisters *floating = stopped.change_floating())
                std::memcpy(reinterpret_cast<std::byte *>(floating) + change.offset, &change.bits, change.size);
            break;
        case Change::Where::memory:
            process.space->memory->write(VirtAddr{change.address},
                                         std::as_bytes(std::span(&change.bits, 1)).first(change.size));
            break;
        }
    }
    return moved;
}

bool skip_function(Process &process, VirtAddr function, os::Stopped &stopped) {
    Host::Registers &registers = stopped.change_registers();
    Host::set_pc(registers, function);
    return Host::return_at_once(registers, *process.space->memory);
}

} // namespace ktrace::engine
