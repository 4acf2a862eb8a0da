// The machine's instructions that write: nodes of a record or a key, and what Moment::call saves for Moment::ret.
#include "program/run/floats.h"
#include "program/run/machine.h"

#include <cstring>

namespace ktrace::program {

namespace {

using State = Slot::State;

} // namespace

void Machine::write_bad(const Slot &slot, NodeWriter &out) {
    switch (slot.state) {
    case State::fault: return out.number(Tag::fault, slot.bits);
    case State::unavailable: return out.empty(slot.bits == unavailable_not_known ? Tag::not_known : Tag::unavailable);
    default: return out.empty(Tag::na);
    }
}

bool Machine::emit(const Instr &instr, NodeWriter &out) {
    switch (instr.op) {
    case Opcode::begin_group:
    case Opcode::more:
    case Opcode::end_group: return group(instr, out);
    case Opcode::emit_na: out.empty(instr.imm == na_elided ? Tag::elided : Tag::na); return true;
    case Opcode::emit_stack: emit_stack(instr, out); return true;
    case Opcode::emit_caller: emit_caller(out); return true;
    case Opcode::emit_registers: out.sized(Tag::registers, std::as_bytes(std::span(&hit_.registers, 1))); return true;
    default: break;
    }
    Slot slot = pop();
    if (depth_ == 0 || out.in_group()) used_ = out.scratch_below(); // between two values the scratch is free
    if (slot.state != State::ok) {
        write_bad(slot, out);
        return !broken_;
    }
    std::span<const std::byte> bytes(slot.bytes, slot.bytes ? slot.size : 0);
    switch (instr.op) {
    case Opcode::emit_sint: out.number(Tag::sint, slot.bits); break;
    case Opcode::emit_uint: out.number(Tag::uint, slot.bits); break;
    case Opcode::emit_hex: out.number(Tag::hex, slot.bits); break;
    case Opcode::emit_symbol: out.number(Tag::symbol, slot.bits); break;
    case Opcode::emit_floating: out.number(Tag::floating, slot.bits); break;
    case Opcode::emit_boolean: out.boolean(slot.bits != 0); break;
    case Opcode::emit_raw: emit_raw(instr, slot, out); break;
    case Opcode::emit_object: emit_object(instr, bytes, out); break;
    case Opcode::emit_memory: emit_memory(instr, slot, out); break;
    case Opcode::emit_text: out.string(slot.bits, slot.truncated, bytes); break;
    case Opcode::emit_buffer: out.sized(Tag::buffer, bytes); break;
    case Opcode::emit_pointer: emit_char_pointer(instr, slot, out); break;
    case Opcode::emit_pointee: emit_pointee(instr, slot, out); break;
    case Opcode::emit_wide: emit_wide(instr, slot, out); break;
    default: return false;
    }
    return !broken_;
}

void Machine::emit_raw(const Instr &instr, const Slot &slot, NodeWriter &out) {
    std::byte bytes[8];
    std::size_t size = std::min<std::size_t>(instr.size, 8);
    if (instr.is_float && size == 4) {
        const std::uint32_t narrow = float_bits(slot.bits);
        std::memcpy(bytes, &narrow, 4);
    } else {
        std::memcpy(bytes, &slot.bits, size);
    }
    out.raw(instr.index, std::span(bytes, size));
}

void Machine::emit_object(const Instr &instr, std::span<const std::byte> bytes, NodeWriter &out) {
    out.raw(instr.index, bytes);
}

void Machine::emit_memory(const Instr &instr, const Slot &slot, NodeWriter &out) {
    Slot object = read_buffer(slot.bits, static_cast<std::uint64_t>(instr.imm));
    if (object.state != State::ok) return write_bad(object, out);
    if (object.truncated) return out.number(Tag::fault, slot.bits + object.size);
    emit_object(instr, {object.bytes, object.size}, out);
}

void Machine::emit_char_pointer(const Instr &instr, const Slot &slot, NodeWriter &out) {
    if (slot.bits == 0) return out.is_key() ? out.number(Tag::hex, 0) : emit_raw(instr, slot, out);
    Slot text = read_string(slot.bits, static_cast<std::uint64_t>(instr.imm));
    if (text.state != State::ok) return write_bad(text, out);
    out.string(slot.bits, text.truncated, {text.bytes, text.size});
}

void Machine::emit_pointee(const Instr &instr, const Slot &slot, NodeWriter &out) {
    if (out.is_key()) return out.number(Tag::hex, slot.bits);
    if (slot.bits == 0) return emit_raw(instr, slot, out);
    Slot object = read_buffer(slot.bits, static_cast<std::uint64_t>(instr.imm));
    if (object.state != State::ok) return write_bad(object, out);
    if (object.truncated) return out.number(Tag::fault, slot.bits + object.size);
    out.pointee(slot.bits, instr.reg, {object.bytes, object.size});
}

void Machine::emit_wide(const Instr &instr, const Slot &slot, NodeWriter &out) {
    if (out.is_key()) return out.number(Tag::hex, slot.bits);
    if (slot.bits == 0) return out.raw(instr.index, std::as_bytes(std::span(&slot.bits, 1)));
    std::uint64_t unit = 1;
    const std::size_t wide = std::min<std::size_t>(std::max<std::size_t>(instr.size, 1), sizeof unit);
    const auto most = static_cast<std::size_t>(instr.imm);
    const Slot text = read_buffer(slot.bits, most + wide); // one more shows whether the text goes on
    if (text.state != State::ok) return write_bad(text, out);
    std::size_t size = 0;
    while (unit != 0 && size + wide <= text.size) {
        unit = 0;
        std::memcpy(&unit, text.bytes + size, wide);
        size += wide;
    }
    if (unit != 0) size = std::min(size, most);
    out.pointee(slot.bits, instr.reg, {text.bytes, size});
}

void Machine::emit_stack(const Instr &instr, NodeWriter &out) {
    std::size_t wanted = std::min(static_cast<std::size_t>(instr.imm), max_frames);
    std::size_t count = hit_.thread->stack(std::span(frames_).first(wanted));
    out.stack(std::span(frames_).first(std::min(count, wanted)));
}

void Machine::emit_caller(NodeWriter &out) {
    if (hit_.thread->stack(std::span(frames_).first(2)) < 2) return out.empty(Tag::na);
    out.number(Tag::function, frames_[1]);
}

bool Machine::save(const Instr &instr, NodeWriter &out) {
    switch (instr.op) {
    case Opcode::save_slot:
    case Opcode::save_object: {
        Slot slot = pop();
        std::uint64_t saved[2] = {slot.bits, static_cast<std::uint64_t>(slot.state)};
        std::size_t begin = instr.index + sizeof saved;
        if (begin + static_cast<std::size_t>(instr.imm) > capture_.size()) return false;
        std::memcpy(capture_.data() + instr.index, saved, sizeof saved);
        if (instr.op == Opcode::save_object && slot.state == State::ok && slot.bytes)
            std::memcpy(capture_.data() + begin, slot.bytes,
                        std::min<std::size_t>(slot.size, static_cast<std::size_t>(instr.imm)));
        return !broken_;
    }
    case Opcode::begin_blob:
        blob_ = NodeWriter(capture_.subspan(std::min(captured_, capture_.size())), image_.header().payload_limit,
                           instr.is_signed);
        blob_open_ = true;
        return true;
    case Opcode::end_blob: {
        blob_open_ = false;
        captured_ += blob_.size();
        auto end = static_cast<std::uint32_t>(captured_);
        if (std::size_t{instr.index} * 4 + 4 > capture_.size()) return false;
        std::memcpy(capture_.data() + std::size_t{instr.index} * 4, &end, 4);
        return true;
    }
    case Opcode::copy_blob: {
        std::uint32_t begin = image_.header().capture_fixed, end = 0;
        std::span<const std::byte> from = hit_.captured;
        std::size_t at = std::size_t{instr.index} * 4;
        if (at + 4 > from.size()) return false;
        if (instr.index > 0) std::memcpy(&begin, from.data() + at - 4, 4);
        std::memcpy(&end, from.data() + at, 4);
        if (begin > end || end > from.size()) return false;
        out.nodes(from.subspan(begin, end - begin));
        return true;
    }
    default: return false;
    }
}

} // namespace ktrace::program
