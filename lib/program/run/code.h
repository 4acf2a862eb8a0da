// Code: what a Program holds: for each moment the instructions of a small stack machine. lower.h makes it, machine.h
// runs it.
//
// The machine's stack holds Slots. An integer lies in a slot extended to 64 bits by its own width and sign; a float or
// double as a double's bits; a text, buffer or object as a span of bytes. A slot may be bad (fault, no value, optimized
// out) instead; every instruction passes a bad operand on, except comparisons, which then answer false.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "program/run/program.h"
#include "value/type.h"

namespace ktrace::program {

/// One operation. Operands: `size` bytes, `is_signed`, `index` and `imm` as documented beside each.
enum class Opcode : std::uint8_t {
    // values
    push,    // imm: an integer, or a double's bits
    push_na, // has no value here
    push_unavailable,
    push_register, // index: offset in Registers, or in FpRegisters where is_float; size, is_signed
    push_pid,
    push_tid,
    push_nsecs,
    push_duration,
    push_text, // index: in Code::constants
    push_comm,
    push_captured, // index: offset in the capture of a slot that save_slot left
    tls,           // imm: the block, from the thread pointer; an offset → its address in this thread
    // the stack itself
    dup,
    drop,
    over,
    swap,
    rot,
    pick, // pick: imm
    // integers, 64 bit
    add,
    sub,
    mul,
    div_s,
    div_u,
    mod_s,
    mod_u,
    bit_and,
    bit_or,
    bit_xor,
    shl,
    shr_s,
    shr_u,
    neg,
    bit_not,
    abs,
    add_imm, // imm
    narrow,  // size, is_signed: the low bytes, extended again
    extract, // index: first bit, imm: number of bits, is_signed
    lt_s,
    lt_u,
    eq, // two integers → 0 or 1, false where one is bad; gt, le… by swapping and inverting at compile time
    le_s,
    le_u,
    ne,
    // doubles
    fadd,
    fsub,
    fmul,
    fdiv,
    fneg,
    round_float,
    flt,
    fle,
    feq,
    fne,
    from_signed,
    from_unsigned, // integer → double
    to_integer,    // size, is_signed: double → integer, saturating; NaN: 0
    truth,
    ftruth,      // → 0 or 1; bad: 0
    logical_not, // 0 → 1, else 0
    // flow; imm: relative to the next instruction
    jump,
    jump_false, // pops; bad counts as false
    jump_bad,   // does not pop; jumps where the top is bad
    and_else,   // top is false: keep it and jump; true: pop it
    or_else,    // top is true: keep it and jump; false: pop it
    // memory: an address → what lies there
    load,         // size, is_signed
    load_float,   // size: 4, 8, else long double
    str,          // pointer, length → text; reads up to the NUL
    str_imm,      // the same, length in imm
    counted_text, // pointer, length → text of that many bytes, imm at most
    array_text,   // imm: bytes of a char array at the address → text
    buf,          // pointer, length → buffer
    fetch,        // imm: bytes → object
    // objects (bytes in the machine's scratch)
    object_new,      // imm: size; zeroed
    object_put,      // object, integer: its low `size` bytes at `index`
    object_read,     // object, address: `size`… imm bytes of memory at `index`
    object_register, // index: offset in the object, imm: offset in Registers/FpRegisters (is_float), size
    object_const,    // index: offset in the object, imm: in Code::constants
    object_captured, // index: offset in the capture of what save_object left, imm: size
    object_load,     // index: offset, size, is_signed → integer
    object_float,    // index: offset, size → double
    object_text,     // index: offset, imm: size → text up to the NUL
    object_part,     // index: offset, imm: size → object
    text_eq,
    text_ne,
    text_lt,
    text_le, // two texts → 0 or 1; false where one is bad
    // output: pop a slot, write one node
    emit_sint,
    emit_uint,
    emit_hex,
    emit_floating,
    emit_boolean,
    emit_raw,    // index: type, size: of the integer (or is_float: a double of `size` bytes)
    emit_object, // index: type
    emit_memory, // index: type, imm: bytes; of an address
    emit_text,
    emit_buffer,
    emit_pointer,   // index: type; a char * (imm: bytes read at most): its string
    emit_pointee,   // index: type of the pointer, reg: type of the pointee, imm: its size
    emit_na,        // pops nothing
    emit_stack,     // imm: frames; pops nothing
    emit_registers, // pops nothing
    // what Moment::call leaves for Moment::ret
    save_slot,   // index: offset in the capture
    save_object, // index: offset, imm: size
    begin_blob,
    end_blob,  // index: number of the blob
    copy_blob, // index: writes the nodes of a blob
    // fault injection
    inject, // index: of the Destination; the value on top goes there, and stays on the stack
};

struct Instr {
    Opcode op = Opcode::push;
    std::uint8_t size = 8;
    bool is_signed = false, is_float = false;
    std::uint32_t index = 0;
    std::uint32_t reg = 0; // emit_pointee
    std::int64_t imm = 0;
};
using Instrs = std::vector<Instr>;

inline constexpr std::size_t max_slots = 64;           // depth of the machine's stack
inline constexpr std::size_t max_instructions = 20000; // run for one hit, at most: a DWARF expression may loop
inline constexpr std::size_t saved_slot_size = 16;     // u64 bits, u64 state
inline constexpr std::uint64_t default_str = 64, max_str = max_value; // bytes that str() reads
inline constexpr std::size_t node_overhead = 24;                      // bytes of a node beside its payload, at most

/// The operations of one moment, in this order.
struct MomentCode {
    bool runs = false;
    bool has_condition = false, selects = false, aggregates = false, has_value = false;
    bool writes_event = false;
    bool value_is_float = false, value_is_unsigned = false;
    Instrs condition;               // → a slot
    std::vector<Instrs> key;        // each emits one node of the table's key
    Instrs value;                   // → a slot: what --stats and --hist look at
    std::vector<Instrs> injections; // where tables see the hits: run at those that are selected
    std::vector<Instrs> body; // each emits the node of one field (or copies some); call: saves a part of the capture
    Needs needs;
};

struct Code {
    MomentCode at[moments];
    std::vector<std::string> constants;
    const value::TypeTable *types = nullptr;
    std::deque<value::Type> derived;         // pointer types that only expressions have
    std::vector<Destination> destinations;   // of inject
    std::size_t capture_fixed = 0;           // bytes of saved slots and objects and of the blobs' ends
    std::size_t capture_size = 0;            // with the blobs
    std::optional<std::size_t> selection_at; // in the capture: whether the call was selected, for its return
    std::uint32_t blobs = 0;                 // their ends (u32 each) lie at the start of the capture
    std::size_t payload_limit = max_value;   // bytes of one node's payload: lower where there are very many

    MomentCode &moment(Moment m) { return at[static_cast<std::size_t>(m)]; }
    const MomentCode &moment(Moment m) const { return at[static_cast<std::size_t>(m)]; }
};

} // namespace ktrace::program
