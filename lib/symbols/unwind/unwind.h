// Unwind: the return addresses of a stopped thread, by the call frame information of the modules it is in.
//
// Invariants: reads go through the Memory port only; every step either gets nearer to the stack's end or crosses a
// signal frame, and there are no more steps than there is room for, so that a broken stack ends it; nothing of a stack
// is guessed: where neither call frame information nor a frame pointer chain goes on, it ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>

#include "arch/host.h"
#include "base/memory.h"
#include "symbols/module.h"

namespace ktrace::symbols {

class CallFrames;
class StackPages;

/// One frame of a stack.
struct StackFrame {
    std::uint64_t pc = 0;
    bool is_call = false;  // pc is behind the call that the frame waits for; else execution was interrupted there
    std::uint64_t cfa = 0; // its canonical frame address: the caller's stack pointer behind the call; 0: not known
};

/// The module at an address of a process, and where it is loaded; no module: code that no file has.
struct ModuleAt {
    std::shared_ptr<const Module> module;
    std::uint64_t bias = 0;
};
using ModuleFinder = std::function<ModuleAt(VirtAddr)>;

/// Of a stack that was unwound without the registers.
struct Unwound {
    std::size_t frames = 0;
    bool lacks_registers = false; // it may go on: the next frame is found by a register that is not known
};

/// Keeps the call frame information of modules between stacks: one for a session.
class Unwinder {
  public:
    Unwinder();
    ~Unwinder();
    Unwinder(const Unwinder &) = delete;

    /// Fills `into` with the frames from the pc to the outermost caller, innermost first; returns how many. The
    /// registers' pc must be the program's own (never in a slot). A pc of 0 or a frame that says that it has no caller
    /// ends the stack. Where call frame information is missing, the frame pointer chain is followed as far as it is
    /// sound. The stack is read by pages, each once.
    std::size_t unwind(const arch::Host::Registers &registers, Memory &memory, const ModuleFinder &find,
                       std::span<StackFrame> into);

    /// The same of a thread of which no more is known than these two registers.
    Unwound unwind(VirtAddr pc, VirtAddr sp, Memory &memory, const ModuleFinder &find, std::span<StackFrame> into);

    /// Lets go of modules that nothing else holds (unloaded ones).
    void forget_unused();

  private:
    struct Walk;

    CallFrames *frames_of(const ModuleAt &at);
    std::size_t go(Walk &walk, Memory &memory, const ModuleFinder &find, std::span<StackFrame> into);

    std::unordered_map<const Module *, std::unique_ptr<CallFrames>> by_module_;
    std::unique_ptr<StackPages> pages_; // kept for its memory
};

} // namespace ktrace::symbols
