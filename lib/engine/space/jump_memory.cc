#include "engine/space/jump_memory.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "recovery/injected_call.h"
#include "recovery/remains.h"

namespace ktrace::engine {

namespace {

constexpr std::int64_t in_use = -EEXIST; // of mmap: something else is there

/// A system call of the stopped task: its answer, or in words why it failed.
Result<std::int64_t> call(const recovery::Hands &hands, const recovery::Page &page, const char *what,
                          std::uint64_t number, std::initializer_list<std::uint64_t> arguments) {
    auto answer = recovery::call_with_way_back(hands.waiter, hands.stopped, hands.syscall_instruction, page,
                                               hands.space, number, arguments);
    if (!answer) return tl::make_unexpected(answer.error());
    if (*answer < 0 && *answer > -4096 && *answer != in_use)
        return fail(Error::Kind::refused,
                    std::string("the process may not ") + what + ": " + std::strerror(static_cast<int>(-*answer)));
    return *answer;
}

/// Opens a file that the process has made, if it is that, and gives it its size, for good.
Result<Fd> open_shared(Tid tid, std::int64_t number, std::size_t size) {
    Fd file(::open(("/proc/" + std::to_string(tid.value) + "/fd/" + std::to_string(number)).c_str(),
                   O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat is {};
    const bool is_new =
        file && ::fstat(file.get(), &is) == 0 && S_ISREG(is.st_mode) && is.st_nlink == 0 && is.st_size == 0;
    if (!is_new || ::ftruncate(file.get(), static_cast<off_t>(size)) != 0 ||
        ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return fail(Error::Kind::refused, "the process may not make shared memory");
    return file;
}

recovery::Hands hands_of(AddressSpaceState &space, const target::Process &process, os::Waiter &waiter,
                         os::Stopped &stopped) {
    return {*space.memory, *process.syscall_instruction, waiter, stopped};
}

void keep(AddressSpaceState &space, VirtAddr at, std::size_t size) {
    space.slots.add({at, size, size, true});
    space.recovery.add_arena(*space.memory, at, size);
}

} // namespace

Result<bool> map_jump_code(AddressSpaceState &space, const target::Process &process, os::Waiter &waiter,
                           os::Stopped &stopped, VirtAddr at, std::size_t size) {
    auto mapped = map_at(hands_of(space, process, waiter, stopped), space.recovery, at, size);
    if (!mapped) return tl::make_unexpected(mapped.error());
    if (*mapped) keep(space, at, size);
    return *mapped;
}

Result<Fd> map_shared(AddressSpaceState &space, const target::Process &process, os::Waiter &waiter,
                      os::Stopped &stopped, const SharedMemory &memory) {
    const recovery::Hands hands = hands_of(space, process, waiter, stopped);
    auto number = call(hands, space.recovery, "make shared memory", SYS_memfd_create,
                       {memory.name.value, MFD_CLOEXEC | MFD_ALLOW_SEALING});
    if (!number) return tl::make_unexpected(number.error());
    const auto fd = static_cast<std::uint64_t>(*number);
    auto file = open_shared(stopped.tid(), *number, memory.size);
    Result<std::int64_t> mapped = std::int64_t{0};
    if (file)
        mapped = call(hands, space.recovery, "map shared memory", SYS_mmap,
                      {memory.at.value, memory.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0});
    auto closed = call(hands, space.recovery, "close a file", SYS_close, {fd});
    if (!file) return tl::make_unexpected(file.error());
    if (!mapped) return tl::make_unexpected(mapped.error());
    if (!closed) return tl::make_unexpected(closed.error());
    if (*mapped == in_use) return Fd();
    keep(space, memory.at, memory.size);
    return std::move(*file);
}

} // namespace ktrace::engine
