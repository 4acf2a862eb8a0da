#include "plugin/probe.h"

#include <cstring>

#include "arch/host.h"

namespace ktrace::plugin {

using arch::Host;
using engine::HandlerHit;

static_assert(sizeof(Host::Registers) <= sizeof(Wire::registers));
static_assert(sizeof(Host::FpRegisters) <= sizeof(Wire::floating));

void PluginProbe::put_registers(HandlerHit &hit) {
    const Host::Registers &registers = hit.stopped.registers();
    std::memcpy(wire().registers, &registers, sizeof registers);
}

void PluginProbe::take_registers(HandlerHit &hit) {
    Host::Registers changed;
    std::memcpy(&changed, wire().registers, sizeof changed);
    const Host::Registers &now = hit.stopped.registers();
    if (std::memcmp(&changed, &now, sizeof changed) != 0) hit.stopped.change_registers() = changed;
}

bool PluginProbe::run(Call call, HandlerHit &hit) {
    if (dead_) return false;
    Wire &to = wire();
    put_registers(hit);
    to.probe = number_;
    to.now_ns = hit.now_ns;
    return plugin_.run(call, {hit.process, hit.task.tid, &hit}, this, 0);
}

bool PluginProbe::pre(HandlerHit &hit) {
    if ((handlers_ & has_before) == 0 || !run(Call::pre, hit)) return false;
    bool pc_is_set = wire().result != 0;
    take_registers(hit);
    return pc_is_set;
}

void PluginProbe::post(HandlerHit &hit) {
    if (run(Call::post, hit)) take_registers(hit);
}

void PluginProbe::entry(HandlerHit &hit) {
    if (dead_) return;
    Wire &to = wire();
    const Host::FpRegisters *floating = hit.stopped.floating();
    to.has_floating = floating != nullptr;
    if (floating) std::memcpy(to.floating, floating, sizeof *floating);
    VirtAddr sp = hit.stopped.sp();
    // Up to the end of what is mapped there.
    to.stack_size = static_cast<std::uint32_t>(hit.process.space->read(sp, to.stack));
    auto return_address = Host::return_address(hit.stopped.registers(), *hit.process.space);
    to.address = return_address ? return_address->value : 0;
    run(Call::entry, hit);
}

namespace {

/// The trap room knows a call by the host's instance and, above, by how often its probe had failed when it began.
constexpr unsigned failures_shift = 32;
constexpr std::uint64_t instance_mask = (std::uint64_t{1} << failures_shift) - 1;

std::uint64_t instance_of(std::uint64_t call) {
    std::uint64_t instance = call & instance_mask;
    return instance == (no_instance & instance_mask) ? no_instance : instance;
}

std::uint64_t failures_before(std::uint64_t call) { return call >> failures_shift; }

} // namespace

std::optional<std::uint64_t> PluginProbe::call(HandlerHit &hit, VirtAddr return_address) {
    if (dead_) return std::nullopt;
    std::uint64_t failures = std::uint64_t{failures_} << failures_shift;
    if ((handlers_ & has_before) == 0) return failures | (no_instance & instance_mask);
    wire().address = return_address.value;
    if (!run(Call::call, hit) || wire().result != 0) return std::nullopt;
    take_registers(hit);
    return failures | (wire().instance & instance_mask);
}

void PluginProbe::place(std::optional<VirtAddr> at) {
    if (at && (gone_ || *at != at_)) {
        at_ = *at;
        gone_ = false;
        plugin_.notes_.push_back({Note::placed, number_, at_.value});
    } else if (!at && at_ != VirtAddr{} && !gone_) {
        gone_ = true;
        plugin_.notes_.push_back({Note::gone, number_, 0});
    }
}

void PluginProbe::missed() {
    missed_++;
    if (!dead_) plugin_.notes_.push_back({Note::missed, number_, missed_});
}

void PluginProbe::ret(HandlerHit &hit, std::uint64_t call, std::uint64_t) {
    if ((handlers_ & has_after) == 0 || failures_before(call) != failures_) {
        dropped(call);
        return;
    }
    auto return_address = hit.at;
    wire().instance = instance_of(call);
    wire().address = return_address.value;
    if (run(Call::ret, hit)) take_registers(hit);
}

void PluginProbe::dropped(std::uint64_t call) {
    if (instance_of(call) != no_instance) plugin_.notes_.push_back({Note::dropped, number_, instance_of(call)});
}

bool PluginProbe::fault(HandlerHit &hit, int trap) {
    wire().trap = trap;
    if (!run(Call::fault, hit) || wire().result == 0) return false;
    take_registers(hit);
    return true;
}

} // namespace ktrace::plugin
