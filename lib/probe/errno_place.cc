#include "probe/errno_place.h"

#include "arch/host.h"
#include "program/lower/types.h"

namespace ktrace::probe {

namespace {

using value::Op;
using value::Place;

constexpr std::size_t longest_code = 32;

/// The place where `offset`, in a module with this bias, leads to.
Place place_of(const arch::ErrnoOffset &found, std::uint64_t bias, std::uint16_t thread_pointer, Memory *memory) {
    if (!found.slot) return Place::at_register(thread_pointer, found.offset);
    const VirtAddr slot{found.slot->value + bias};
    if (auto offset = memory ? memory->read_value<std::int64_t>(slot) : std::nullopt; offset && *offset != 0)
        return Place::at_register(thread_pointer, *offset);
    Place place;
    place.pieces.emplace_back().ops = {{Op::Code::push, 8, 0, static_cast<std::int64_t>(slot.value)},
                                       {Op::Code::deref, 8, 0, 0},
                                       {Op::Code::push_register, 8, thread_pointer, 0},
                                       {Op::Code::plus, 8, 0, 0}};
    return place;
}

} // namespace

Result<program::Binding> errno_place(std::span<const Loaded> modules, Memory *memory) {
    const auto thread_pointer = arch::HostErrno::thread_pointer();
    bool is_there = false;
    for (const Loaded &loaded : modules)
        for (const symbols::Symbol *symbol : loaded.module->named("__errno_location")) {
            is_there = true;
            const std::vector<std::byte> code = loaded.module->bytes_at(symbol->vaddr, longest_code);
            auto found = arch::HostErrno::offset(code, VirtAddr{symbol->vaddr});
            if (found && thread_pointer)
                return program::Binding{&program::types::int32, place_of(*found, loaded.bias, *thread_pointer, memory)};
        }
    if (is_there)
        return fail(Error::Kind::refused, "errno is not known: the code of __errno_location has an unknown form");
    return fail(Error::Kind::refused, "errno is not known: no module has the C library's __errno_location",
                "a static program that is stripped has lost it");
}

} // namespace ktrace::probe
