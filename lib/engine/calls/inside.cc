#include "engine/calls/inside.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/calls/calls.h"
#include "engine/eval/stopped_thread.h"

namespace ktrace::engine {

using arch::Host;
using symbols::StackFrame;

namespace {

constexpr std::size_t most_frames = 4096; // searched for calls

std::vector<StackFrame> stack_of(Engine &engine, Process &process, VirtAddr pc, os::Stopped &stopped) {
    Host::Registers registers = stopped.registers();
    Host::set_pc(registers, pc);
    std::vector<StackFrame> frames(most_frames);
    frames.resize(unwind_stack(engine, process, registers, frames));
    return frames;
}

/// The place of the frame's own call, as in Instance::frame.
VirtAddr frame_sp(const StackFrame &frame) { return VirtAddr{frame.cfa} - Host::return_pop; }

/// Compilers put the seldom executed part of f into f.cold, elsewhere.
std::string_view without_cold(std::string_view name) { return name.substr(0, name.find(".cold")); }

bool is_code_of(const Process &process, const Attachment &attachment, VirtAddr at) {
    if (attachment.function <= at && at < attachment.function_end) return true;
    const target::LoadedModule *module = target::module_at(process.target.modules, at);
    if (!module || attachment.function < module->start || attachment.function >= module->end) return false;
    const symbols::Symbol *here = module->module->covering(at.value - module->bias);
    if (!here || here->name.find(".cold") == here->name.npos) return false;
    const symbols::Symbol *function = module->module->covering(attachment.function.value - module->bias);
    return function && without_cold(here->name) == without_cold(function->name);
}

struct Enclosing {
    Attachment *attachment;
    Site *site;
};

std::vector<Enclosing> enclosing_probes(const AddressSpaceState &space) {
    std::vector<Enclosing> all;
    for (const auto &[at, site] : space.sites)
        for (Attachment *attachment : site->attachments)
            if (attachment->on && attachment->encloses != 0) all.push_back({attachment, site.get()});
    return all;
}

bool is_known(AddressSpaceState &space, const Attachment &attachment, VirtAddr sp) {
    for (const Instance *call = space.returns.at(sp); call; call = call->older_in_chain)
        if (call->attachment == &attachment) return true;
    return false;
}

/// Finds the calls that began before the task was seen for the first time.
void learn(Engine &engine, Process &process, Task &task, VirtAddr pc, os::Stopped &stopped) {
    if (std::exchange(task.calls.enclosures_known, true)) return;
    std::vector<Enclosing> enclosing = enclosing_probes(*process.space);
    if (enclosing.empty()) return;
    std::vector<StackFrame> frames = stack_of(engine, process, pc, stopped);
    for (std::size_t i = frames.size(); i-- > 0;) {
        // The outermost frame has no caller; at a function's first instruction its call is yet to be seen.
        if (i + 1 == frames.size() || frames[i].cfa == 0) continue;
        VirtAddr at{frames[i].pc - (frames[i].is_call ? 1 : 0)};
        for (const Enclosing &each : enclosing) {
            if (!is_code_of(process, *each.attachment, at) || (i == 0 && at == each.attachment->function)) continue;
            VirtAddr sp = frame_sp(frames[i]);
            if (!is_known(*process.space, *each.attachment, sp))
                adopt_call(engine, process, task, *each.attachment, *each.site, stopped,
                           {sp, VirtAddr{frames[i + 1].pc}});
        }
    }
}

/// By the stack: one of its frames is that of such a call.
bool is_on_stack(Engine &engine, Process &process, std::uint32_t number, VirtAddr pc, os::Stopped &stopped) {
    std::vector<StackFrame> frames = stack_of(engine, process, pc, stopped);
    for (std::size_t i = 0; i + 1 < frames.size(); i++) {
        if (frames[i].cfa == 0) continue;
        const Instance *call = process.space->returns.at(frame_sp(frames[i]));
        for (; call; call = call->older_in_chain)
            if (call->attachment->encloses == number && call->frame.return_address.value == frames[i + 1].pc)
                return true;
    }
    return false;
}

} // namespace

void enter_enclosing(Engine &engine, Process &process, Task &task, Attachment &attachment, Site &site,
                     os::Stopped &stopped) {
    learn(engine, process, task, site.at, stopped);
    begin_call(engine, process, task, attachment, site, stopped, {});
}

std::uint64_t enclosed_by(std::uint32_t number) { return std::uint64_t{1} << number % 64; }

std::uint64_t enclosed_by(const AddressSpaceState &space, const Task &task) {
    if (!task.calls.enclosures_known) return ~std::uint64_t{0};
    std::uint64_t all = 0;
    if (task.calls.unwinds != 0) // it may be on the stack of another task's call
        for (const auto &[number, calls] : space.enclosing_calls)
            if (calls != 0) all |= enclosed_by(number);
    for (const Instance *call = task.calls.youngest; call; call = call->older_call)
        if (const std::uint32_t number = call->attachment->encloses; number != 0) all |= enclosed_by(number);
    return all;
}

bool is_inside(Engine &engine, Process &process, Task &task, std::uint32_t number, VirtAddr pc, os::Stopped &stopped) {
    learn(engine, process, task, pc, stopped);
    const Instance *call = task.calls.youngest;
    while (call && call->attachment->encloses != number) call = call->older_call;
    std::uint32_t since = call ? call->unwinds : 0;
    if (task.calls.unwinds == since) return call != nullptr;
    return is_on_stack(engine, process, number, pc, stopped);
}

} // namespace ktrace::engine
