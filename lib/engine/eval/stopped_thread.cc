#include "engine/eval/stopped_thread.h"

#include <algorithm>

namespace ktrace::engine {

using arch::Host;

std::size_t unwind_stack(Engine &engine, Process &process, const Host::Registers &registers,
                         std::span<symbols::StackFrame> into) {
    const target::LoadedModule *last = nullptr; // neighbours on a stack are often of one module
    auto find = [&](VirtAddr at) -> symbols::ModuleAt {
        if (!last || !last->holds(at)) last = target::module_at(process.target.modules, at);
        if (!last) return {};
        return {last->module, last->bias};
    };
    return engine.unwinder.unwind(registers, *process.space->memory, find, into);
}

std::string_view StoppedThread::comm() {
    const std::string_view name = engine_.names.read(process_.target.pid, stopped_.tid());
    return name.empty() ? process_.target.comm : name;
}

std::optional<VirtAddr> StoppedThread::tls(std::int64_t block, std::uint64_t offset) {
    auto pointer = Host::thread_pointer(registers_);
    if (!pointer || block == 0) return std::nullopt;
    return *pointer + block + static_cast<std::int64_t>(offset);
}

std::size_t StoppedThread::stack(std::span<std::uint64_t> into) {
    constexpr std::size_t most = 256;
    symbols::StackFrame frames[most];
    std::size_t count =
        unwind_stack(engine_, process_, registers_, std::span(frames).first(std::min(most, into.size())));
    for (std::size_t i = 0; i < count; i++)
        into[i] = frames[i].pc | (i == 0 || frames[i].is_call ? 0 : program::interrupted);
    return count;
}

} // namespace ktrace::engine
