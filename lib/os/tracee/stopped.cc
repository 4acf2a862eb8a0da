#include "os/tracee/stopped.h"

#include <utility>

#include "base/check.h"

namespace ktrace::os {

using arch::Host;
using arch::HostNative;

// A token is moved several times a hit, mostly with no registers read: hundreds of bytes are not copied for nothing.
Stopped::Stopped(Stopped &&other) noexcept
    : waiter_(std::exchange(other.waiter_, nullptr)), stop_(other.stop_), rest_(other.rest_), pc_(other.pc_),
      pc_changed_(other.pc_changed_), registers_changed_(other.registers_changed_),
      floating_changed_(other.floating_changed_), gone_(other.gone_) {
    if (other.registers_) registers_.emplace(*other.registers_);
    if (other.floating_) floating_.emplace(*other.floating_);
}

Stopped::~Stopped() { KT_CHECK(waiter_ == nullptr); }

VirtAddr Stopped::pc() {
    if (registers_) return Host::pc(*registers_);
    if (!pc_) {
        pc_ = HostNative::read_pc(tid());
        if (!pc_) {
            gone_ = true;
            pc_ = VirtAddr{};
        }
    }
    return *pc_;
}

void Stopped::set_pc(VirtAddr pc) {
    if (registers_) Host::set_pc(*registers_, pc);
    pc_ = pc;
    pc_changed_ = true;
}

VirtAddr Stopped::sp() { return Host::sp(registers()); }

const Host::Registers &Stopped::registers() {
    if (!registers_) {
        registers_.emplace();
        if (!HostNative::read_registers(tid(), *registers_)) {
            gone_ = true;
            *registers_ = {};
        }
        if (pc_changed_) Host::set_pc(*registers_, *pc_);
    }
    return *registers_;
}

Host::Registers &Stopped::change_registers() {
    registers();
    registers_changed_ = true;
    return *registers_;
}

const Host::FpRegisters *Stopped::floating() {
    if (!floating_) {
        floating_.emplace();
        if (!HostNative::read_floating(tid(), *floating_)) {
            floating_.reset();
            return nullptr;
        }
    }
    return &*floating_;
}

const Host::UpperRegisters *Stopped::upper() {
    if (!upper_ && !HostNative::read_upper(tid(), upper_.emplace())) upper_.reset();
    return upper_ ? &*upper_ : nullptr;
}

Host::FpRegisters *Stopped::change_floating() {
    if (!floating()) return nullptr;
    floating_changed_ = true;
    return &*floating_;
}

void Stopped::write_back() {
    bool written = true;
    if (floating_changed_) HostNative::write_floating(tid(), *floating_);
    floating_changed_ = false;
    if (registers_changed_)
        written = HostNative::write_registers(tid(), *registers_);
    else if (pc_changed_)
        written = HostNative::write_pc(tid(), *pc_);
    if (!written) gone_ = true;
    registers_changed_ = pc_changed_ = false;
}

bool Stopped::resume(Resume how, int signal) && {
    KT_CHECK(waiter_ != nullptr);
    if (!gone_) write_back();
    waiter_->resumed(tid());
    waiter_ = nullptr;
    if (!os::resume(tid(), how, signal)) gone_ = true;
    return !gone_;
}

void Stopped::keep() && {
    KT_CHECK(waiter_ != nullptr);
    waiter_ = nullptr;
}

} // namespace ktrace::os
