// Machine: runs the instructions of one moment for one hit (see image.h).
//
// Invariants: no allocation, no exceptions, no system call but through the hit's ports; every index is checked or comes
// from our own compiler; a run ends after max_instructions. Text, buffers and objects lie in `scratch_`, which is used
// up from the front and emptied by run(). All that is large lies in the Machine, which the caller provides; the stack
// that it needs beside that, and the functions of others, are bounded by tests/lint/evaluator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "program/run/image.h"
#include "program/run/node_writer.h"
#include "program/run/program.h"
#include "program/run/read_cache.h"

namespace ktrace::program {

struct Slot {
    enum class State : std::uint8_t { ok, fault, unavailable, na }; // na: all ones, see save_capture
    std::uint64_t bits = 0;           // the integer or double; fault: the address; text: the pointer it was read from
    const std::byte *bytes = nullptr; // text, buffer, object
    std::uint32_t size = 0;
    State state = State::ok;
    bool truncated = false; // text: there is more
};

/// Addresses of objects in the machine's scratch: no address of the target's is one (x86-64, arm64).
inline constexpr std::uint64_t scratch_address = 0x4b54'5343'0000'0000;

/// The answer of Opcode::compare_register: most filters are just that.
std::uint64_t compare_register(const Instr &instr, const arch::Host::Registers &registers);

class Machine {
  public:
    Machine(const Image &image, const HitView &hit) : image_(image), hit_(hit), cache_(hit) {}

    /// Runs `instrs`, which write to `out`. Returns the slot left on top, or one of state `na` where none is.
    Slot run(std::span<const Instr> instrs, NodeWriter &out);

    /// Runs parts that write a node each; one that came to nothing still has its place.
    void write_nodes(Parts parts, NodeWriter &out) {
        for (Part part : image_[parts]) {
            const std::size_t before = out.size();
            run(image_[part], out);
            if (out.size() == before) out.empty(Tag::na);
        }
    }

    /// Where Moment::call saves what the return needs. Its used size grows as blobs are written.
    void capture_into(std::span<std::byte> capture, std::size_t fixed) {
        capture_ = capture;
        captured_ = fixed;
    }
    std::size_t captured() const { return captured_; }

  private:
    bool step(const Instr &instr, NodeWriter &out, std::size_t &pc);
    bool value(const Instr &instr);
    bool arrange(const Instr &instr);
    bool integer(const Instr &instr);
    bool floating(const Instr &instr);
    bool flow(const Instr &instr, std::size_t &pc);
    bool memory(const Instr &instr);
    bool object(const Instr &instr);
    bool text(const Instr &instr);
    bool group(const Instr &instr, NodeWriter &out);
    void next_in_tree(const Instr &instr);
    bool word(std::uint64_t address, std::uint64_t &into);
    std::size_t bytes_at(std::uint64_t address, std::span<std::byte> into);
    bool emit(const Instr &instr, NodeWriter &out);
    bool save(const Instr &instr, NodeWriter &out);
    bool inject(const Instr &instr);

    void push(Slot slot) {
        if (depth_ < max_slots)
            stack_.all[depth_++] = slot;
        else
            broken_ = true;
    }
    void push_integer(std::uint64_t bits) { push({.bits = bits}); }
    Slot pop() {
        if (depth_ > 0) return stack_.all[--depth_];
        broken_ = true;
        return {.state = Slot::State::na};
    }
    Slot &top() { return peek(0); }
    Slot &peek(std::size_t below);
    static Slot bad(Slot::State state, std::uint64_t address = 0) { return {.bits = address, .state = state}; }

    std::span<std::byte> scratch(std::size_t size);
    const std::byte *register_at(const Instr &instr, std::uint64_t offset);
    Slot load(const Instr &instr, std::uint64_t address);
    Slot read(const Instr &instr, std::uint64_t address, const Slot &length);
    Slot read_string(std::uint64_t pointer, std::uint64_t length);
    Slot read_counted(std::uint64_t pointer, const Slot &length, std::uint64_t most);
    Slot read_buffer(std::uint64_t pointer, std::uint64_t length);
    void write_bad(const Slot &slot, NodeWriter &out);
    void emit_raw(const Instr &instr, const Slot &slot, NodeWriter &out);
    void emit_object(const Instr &instr, std::span<const std::byte> bytes, NodeWriter &out);
    void emit_memory(const Instr &instr, const Slot &slot, NodeWriter &out);
    void emit_pointee(const Instr &instr, const Slot &slot, NodeWriter &out);
    void emit_wide(const Instr &instr, const Slot &slot, NodeWriter &out);
    void emit_char_pointer(const Instr &instr, const Slot &slot, NodeWriter &out);
    void emit_stack(const Instr &instr, NodeWriter &out);
    void emit_caller(NodeWriter &out);

    const Image image_;
    const HitView &hit_;
    ReadCache cache_;
    union Slots { // not cleared but for the first, which a broken program is given
        Slots() { all[0] = Slot{}; }
        Slot all[max_slots];
    } stack_;
    std::size_t depth_ = 0;
    bool broken_ = false; // the stack ran over or dry: only a malformed DWARF expression does that
    std::span<std::byte> capture_;
    std::size_t captured_ = 0;
    NodeWriter blob_{{}, 0, false}; // open: what emit writes goes into the capture
    bool blob_open_ = false;
    std::size_t used_ = 0;
    std::size_t left_ = 0;                         // instructions that may still run
    std::array<std::uint64_t, max_frames> frames_; // of emit_stack
    std::array<std::byte, 8192> scratch_;          // not cleared: nothing is read that was not written
};

} // namespace ktrace::program
