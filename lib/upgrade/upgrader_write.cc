// The Upgrader's writing: what a jump needs in the process before it is planted, the agent included.
#include <algorithm>
#include <cstring>

#include "agent/blob.h"
#include "agent/layout.h"
#include "engine/agent/agent_records.h"
#include "engine/calls/inside.h"
#include "engine/space/address_space_state.h"
#include "engine/space/jump_memory.h"
#include "engine/space/readable.h"
#include "os/self/allocate.h"
#include "upgrade/upgrader.h"

namespace ktrace::upgrade {

using engine::AddressSpaceState;
using engine::Jump;
using engine::Process;

namespace {

ktrace_recovery_detour record_of(const Jump &jump) {
    ktrace_recovery_detour record{};
    record.site = jump.at.value;
    record.size = static_cast<std::uint8_t>(jump.bytes.size());
    std::memcpy(record.original, jump.code.data(), std::min(jump.code.size(), jump.bytes.size()));
    std::memcpy(record.ours, jump.bytes.data(), jump.bytes.size());
    for (auto i = static_cast<unsigned>(arch::Host::trap_bytes().size()); i < jump.bytes.size(); i++)
        if (std::ranges::none_of(jump.window.inner, [i](const arch::Boundary &each) { return each.offset == i; }))
            record.tail = static_cast<std::uint8_t>(record.tail | 1u << i);
    return record;
}

} // namespace

/// The agent of an area that was just mapped, and, the first time, the memory of its threads.
Result<Upgrader::Mapped> Upgrader::put_agent(Process &process, os::Stopped &stopped, const engine::JumpArea &area) {
    AddressSpaceState &space = *work_->space;
    const agent::Blob &blob = agent::blob();
    if (!engine::recovery_has_room(space, 1))
        if (auto made = engine::prepare_recovery(space, process.target, trace_.engine.waiter, stopped, 1); !made)
            return tl::make_unexpected(made.error());
    ktrace_recovery_entry bell{};
    bell.site = area.agent.value + blob.bell;
    bell.go_to = bell.site + arch::Host::trap_bytes().size();
    bell.kind = ktrace_recovery_slot;
    bell.trap_size = bell.length = static_cast<std::uint8_t>(arch::Host::trap_bytes().size());
    std::memcpy(bell.original, arch::Host::trap_bytes().data(), bell.trap_size); // it stays, for threads on their way
    bell.is_of_jump = 1;
    if (!space.recovery.add(*space.memory, bell) || !space.memory->write_own(area.agent, blob.bytes))
        return fail(Error::Kind::refused, "memory cannot be written");
    if (space.threads) return Mapped::all;
    auto file = engine::map_shared(space, process.target, trace_.engine.waiter, stopped,
                                   {space.jumps->threads_at, engine::AgentThreads::size, area.start});
    if (!file) return tl::make_unexpected(file.error());
    if (!*file) return Mapped::taken;
    if (auto made = os::allocate(*file, 0, engine::AgentThreads::first_part); !made)
        return tl::make_unexpected(made.error());
    auto threads = engine::AgentThreads::map(std::move(*file), space.jumps->threads_at);
    if (!threads) return tl::make_unexpected(threads.error());
    space.threads = std::move(*threads);
    trace_.engine.processor_clock.compare();
    engine::show_clock(trace_.engine, *space.threads);
    if (trace_.config.lossless) space.threads->wait_for_ever();
    space.threads->show_alive();
    const engine::AgentCosts &costs = trace_.engine.agent_costs;
    space.threads->set_costs(costs.per_call, costs.per_hit);
    const auto error = [](const program::TimeErrors &errors) { return static_cast<std::uint64_t>(errors.p90) + 1; };
    space.threads->set_errors(error(costs.of_call), error(costs.of_hit),
                              error(trace_.engine.corrections.present(engine::Clock::stops).of_stop));
    engine::list_readable(process, true);
    space.returns.show_to(*space.threads);
    for (const auto &[at, site] : space.sites)
        if (site->kept_for_returns) space.threads->know_return(at);
    return Mapped::all;
}

/// The images of the jump's programs, and where the agent finds them.
bool Upgrader::write_runs(const Jump &jump, const engine::JumpArea &area) {
    bool is_written = true;
    for (std::size_t i = 0; i < jump.runs.size(); i++) is_written = is_written && write_run(jump, i, area);
    return is_written;
}

bool Upgrader::write_run(const Jump &jump, std::size_t index, const engine::JumpArea &area) {
    AddressSpaceState &space = *work_->space;
    const engine::AgentRun &run = jump.runs[index];
    auto counter = [&](std::size_t number) { return area.counters.value + number * sizeof(std::uint64_t); };
    const agent::SiteCode code{area.agent.value,
                               jump.at.value,
                               run.image.value,
                               space.threads->address().value,
                               counter(jump.counter),
                               counter(jump.counter + 1),
                               run.number,
                               static_cast<std::uint32_t>(run.moment),
                               index + 1 < jump.runs.size() ? jump.runs[index + 1].site_code.value : 0,
                               run.inside != 0 ? engine::enclosed_by(run.inside) : 0};
    const bool has_image = run.program.is_empty() || space.memory->write_own(run.image, run.program.image().bytes());
    return has_image && space.memory->write_own(run.site_code, std::as_bytes(std::span(&code, 1)));
}

bool Upgrader::write(Jump &jump) {
    AddressSpaceState &space = *work_->space;
    const engine::Site *site = space.site_at(jump.at);
    if (!site || !engine::list_in_recovery(space, *site)) return false; // before the tail
    if (!jump.is_written) {
        const auto landing = arch::HostDetour::jump(jump.landing, jump.stub_at);
        const auto area =
            std::ranges::find_if(space.jumps->areas, [&](const auto &each) { return each.block == jump.block; });
        if (!landing || area == space.jumps->areas.end()) return false;
        if (!write_runs(jump, *area)) return false;
        const ktrace_recovery_detour record = record_of(jump);
        const auto bytes = std::as_bytes(std::span(&record, 1));
        const VirtAddr at = area->records + static_cast<std::int64_t>(jump.index * sizeof record);
        constexpr std::size_t site_size = sizeof record.site;
        if (!space.memory->write_own(jump.stub_at, jump.stub.bytes) ||
            (jump.landing != jump.stub_at && !space.memory->write_own(jump.landing, *landing)) ||
            !space.memory->write_own(at + static_cast<std::int64_t>(site_size), bytes.subspan(site_size)) ||
            !space.memory->write_own(at, bytes.first(site_size)))
            return false;
        jump.is_written = true;
    }
    space.jumps->by_stub[jump.stub_at] = &jump;
    if (jump.landing != jump.stub_at) space.jumps->by_landing[jump.landing] = &jump;
    return true;
}

} // namespace ktrace::upgrade
