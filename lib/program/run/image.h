// Image: the code of a Program as one block of bytes, which machine.h runs. It holds offsets and no pointers, so it may
// be copied elsewhere, into another process, too, and run there.
//
// The machine's stack holds Slots. An integer lies in a slot extended to 64 bits by its own width and sign; a float or
// double as a double's bits; a text, buffer or object as a span of bytes. A slot may be bad (fault, no value, optimized
// out) instead; every instruction passes a bad operand on, except comparisons, which then answer false.
//
// Invariants: it begins at a multiple of image_alignment; equal code is equal bytes (no structure here has padding, and
// bytes that fill up are 0); no type is in it, only the indices that records name types by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "program/run/changes.h"
#include "program/run/record.h"

namespace ktrace::program {

/// One operation. Operands: `size` bytes, `is_signed`, `index` and `imm` as documented beside each.
enum class Opcode : std::uint8_t {
    // values
    push,             // imm: an integer, or a double's bits
    push_na,          // has no value here
    push_unavailable, // imm: 0, or unavailable_not_known
    push_register,    // index: offset in Registers, or in FpRegisters where is_float; size, is_signed
    push_pid,
    push_tid,
    push_nsecs,
    push_duration,
    push_text, // index: of a constant
    push_comm,
    compare_register, // as push_register, then as compare_with
    push_captured,    // index: offset in the capture of a slot that save_slot left
    tls,              // imm: the block, from the thread pointer; an offset → its address in this thread
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
    compare_with, // reg: one of the comparisons, with imm on its right, or, where is_float, on its left
    truth,        // → 0 or 1; bad: 0
    logical_not,  // 0 → 1, else 0
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
    ftruth,        // → 0 or 1; bad: 0
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
    next_in_tree, // a node → the one behind it; index: offsets of its left, right and upper ones, a byte each
    fetch,        // imm: bytes → object
    // objects (bytes in the machine's scratch)
    object_new,      // imm: size; zeroed
    object_put,      // object, integer: its low `size` bytes at `index`
    object_read,     // object, address: `size`… imm bytes of memory at `index`
    object_register, // index: offset in the object, imm: offset in Registers/FpRegisters (is_float), size
    object_upper,    // index: offset in the object, imm: offset in UpperRegisters, size
    object_const,    // index: offset in the object, imm: of a constant
    object_captured, // index: offset in the capture of what save_object left, imm: size
    object_load,     // index: offset, size, is_signed → integer
    object_float,    // index: offset, size → double
    object_text,     // index: offset, imm: size → text up to the NUL
    object_address,  // → an address by which the same hit reads the object's bytes as if they were memory
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
    emit_pointer, // index: type; a char * (imm: bytes read at most): its string
    emit_pointee, // index: type of the pointer, reg: type of the pointee, imm: its size
    emit_wide,    // the same of a text of characters of `size` bytes, up to the first 0, imm: bytes at most
    emit_na,      // pops nothing; imm: 0, or na_elided
    emit_stack,   // imm: frames; pops nothing
    emit_caller,  // pops nothing
    emit_symbol,
    begin_group,    // index: type, imm: Form; pops nothing: what follows up to end_group is parts of one node
    more,           // → 1, or 0 where no further element of the group is shown
    end_group,      // pops nothing
    emit_registers, // pops nothing
    // what Moment::call leaves for Moment::ret
    save_slot,   // index: offset in the capture
    save_object, // index: offset, imm: size
    begin_blob,
    end_blob,  // index: number of the blob
    copy_blob, // index: writes the nodes of a blob
    // fault injection
    inject, // index: of a destination; the value on top goes there, and stays on the stack
};

struct Instr {
    Opcode op = Opcode::push;
    std::uint8_t size = 8;
    bool is_signed = false, is_float = false;
    std::uint32_t index = 0;
    std::uint32_t reg = 0; // emit_pointee, compare_with
    std::uint32_t unused = 0;
    std::int64_t imm = 0;
};

/// Of those from `first` to `last`, in the order above.
constexpr bool is_in(Opcode op, Opcode first, Opcode last) { return op >= first && op <= last; }

inline constexpr std::int64_t na_elided = 1;
inline constexpr std::size_t max_slots = 64;           // depth of the machine's stack
inline constexpr std::size_t max_instructions = 20000; // run for one hit, at most: a DWARF expression may loop
inline constexpr std::size_t saved_slot_size = 16;     // u64 bits, u64 state
inline constexpr std::uint64_t default_str = 64, max_str = max_value; // bytes that str() reads
inline constexpr std::size_t node_overhead = 24;                      // bytes of a node beside its payload, at most

/// The registers and memory that a moment of a program touches: the loop reads no more than this.
struct Needs {
    bool registers = false; // any register but pc (and sp)
    bool floating = false;
    bool time = false;     // HitView::time_ns, monotonic_ns
    bool nsecs = false;    // of these, monotonic_ns for a value
    bool duration = false; // HitView::duration_ns
    bool runs = false;     // anything at all happens at this moment
    bool computes = false; // with floating point
};

/// `count` values of type T, from `offset` bytes behind the image's start on.
template <class T> struct Array { std::uint32_t offset = 0, count = 0; };
using Part = Array<Instr>; // run at once
using Parts = Array<Part>;

/// The flags of a moment, of its code and of its image.
struct MomentFlags {
    bool has_condition = false, selects = false, aggregates = false, has_value = false;
    bool value_is_float = false, value_is_unsigned = false;
    Needs needs;
    std::uint8_t unused[3] = {};
};

/// The operations of one moment, in this order.
struct MomentImage : MomentFlags {
    Part condition;   // → a slot
    Parts key;        // each emits one node of the table's key
    Part value;       // → a slot: what --stats and --hist look at
    Parts injections; // where tables see the hits: run at those that are selected
    Parts body;       // each emits the node of one field (or copies some); call: saves a part of the capture
};

inline constexpr std::uint32_t image_magic = 0x4749746b; // "ktIG"
inline constexpr std::uint32_t image_version = 1;
inline constexpr std::size_t image_alignment = 8;
inline constexpr std::uint32_t no_selection = ~std::uint32_t{0};

struct ImageHeader {
    std::uint32_t magic = image_magic, version = image_version;
    std::uint32_t size = 0;                    // of the image, bytes
    std::uint32_t payload_limit = max_value;   // bytes of one node's payload: lower where there are very many
    std::uint32_t capture_fixed = 0;           // bytes of saved slots and objects and of the blobs' ends
    std::uint32_t capture_size = 0;            // with the blobs
    std::uint32_t selection_at = no_selection; // in the capture: whether the call was selected, for its return
    std::uint32_t unused = 0;
    Array<Array<std::byte>> constants;
    Array<Destination> destinations; // of inject
    MomentImage at[moments];
};

static_assert(std::has_unique_object_representations_v<Instr> && std::is_trivially_copyable_v<Instr>);
static_assert(std::has_unique_object_representations_v<Destination> && std::is_trivially_copyable_v<Destination>);
static_assert(std::has_unique_object_representations_v<ImageHeader> && std::is_trivially_copyable_v<ImageHeader>);

/// An image, where it lies now. Made from bytes of ours; they outlive it.
class Image {
  public:
    explicit Image(std::span<const std::byte> bytes) : start_(bytes.data()) {}

    std::span<const std::byte> bytes() const { return {start_, header().size}; }
    const ImageHeader &header() const { return *reinterpret_cast<const ImageHeader *>(start_); }
    const MomentImage &moment(Moment m) const { return header().at[static_cast<std::size_t>(m)]; }
    template <class T> std::span<const T> operator[](Array<T> array) const {
        return {reinterpret_cast<const T *>(start_ + array.offset), array.count};
    }
    /// Empty where there is no such constant.
    std::span<const std::byte> constant(std::uint64_t number) const {
        auto all = (*this)[header().constants];
        return number < all.size() ? (*this)[all[number]] : std::span<const std::byte>();
    }

  private:
    const std::byte *start_;
};

} // namespace ktrace::program
