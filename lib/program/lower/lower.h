// Lowering: the typed semantic analysis of an EXPR against a Scope, and the instructions that it becomes.
//
// Invariants: an EXPR that does not fit the scope is an Error with the columns of the part that does not; then nothing
// that was written to the instructions may be used. Recursion is bounded by Tree::max_depth.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/expr/expr.h"
#include "program/lower/code.h"
#include "program/lower/scope.h"

namespace ktrace::program {

/// An EXPR, half evaluated: the value that the instructions so far leave, and its properties.
struct Operand {
    enum class Where : std::uint8_t {
        value,    // a scalar, text or buffer on the machine's stack (a stack: nothing there)
        memory,   // the address of an object or scalar on the machine's stack; it begins `offset` bytes behind it
        place,    // nothing on the stack; in `place`, `offset` bytes into it
        captured, // nothing on the stack; an object saved at `saved` by Moment::call, `offset` bytes into it
    };
    Where where = Where::value;
    const value::Type *type = nullptr;
    bool untyped = false;  // a register: a pointer among these prints in hex and is not followed
    bool computed = false; // not as it lies in the target: prints without its type's name
    value::Place place = {};
    std::uint64_t place_size = 0;
    std::uint32_t saved = 0;
    std::uint64_t offset = 0;
    std::uint32_t bit_offset = 0, bit_size = 0; // a bit field
};

/// The arguments that Moment::call saves for the expressions of Moment::ret.
struct ArgumentCapture {
    Code &code;
    Scope &entry;
    std::vector<Instrs> &body; // of Moment::call
    std::size_t next;          // first free byte of the capture's fixed part
    std::vector<std::pair<std::string, Operand>> known = {};
    std::vector<std::pair<std::string, std::uint32_t>> conditions = {};
};

/// The facts that an EXPR uses; decides when it is evaluated on a return probe.
struct Uses {
    bool arguments = false;
    bool outcome = false; // retval, duration, errno
    bool present = false; // nsecs, registers, variables, the stack: what they are when evaluated
};
Uses uses(const Tree &tree, Scope &entry);

class Lowering {
  public:
    /// `capture`: at Moment::ret, through which arguments are reached; nullptr elsewhere.
    Lowering(Code &code, Scope &scope, const Tree &tree, Instrs &out, ArgumentCapture *capture)
        : code_(code), scope_(scope), tree_(tree), out_(out), capture_(capture) {}

    /// The whole expression as a condition: leaves 0 or 1.
    Status condition();
    /// As a number for --stats and --hist: leaves it, returns its type.
    Result<const value::Type *> number();
    /// As a value that is shown: emits one node. Gives the bytes that the node's payload may take.
    enum class Style { print, key };
    Result<std::size_t> shown(Style style);

    /// As a number of another type, which goes to `destination` (an index in Code::destinations) and is then shown;
    /// without `emit` it is not shown.
    Status injected(const value::Type &to, std::uint32_t destination, bool emit);

    /// The same for a value that no EXPR names: an argument of -j, a return value. Pointers to structs are followed
    /// once.
    static std::size_t show_binding(const Binding &binding, bool hex, Code &code, Scope &scope, Instrs &out);

  private:
    struct Misfit {
        Error error;
    };
    using Type = value::Type;

    // lower.cc: names and what leads through objects
    Operand lower(int node);
    Operand name(const Expr &e, const value::Type *expected_enum);
    Operand bound(const Expr &e, Result<Binding> binding, bool untyped);
    Operand retval(const Expr &e);
    Operand uninterpreted(int node);
    Operand argument(const Expr &e);
    Operand captured(const Expr &e);
    Operand constant(std::uint64_t bits, const Type &type);
    Operand reg(const Expr &e);
    Operand member(const Expr &e);
    Operand select(const Expr &e, Operand object, const Type &type);
    Operand index(const Expr &e);
    Operand element_of(Operand array, const Expr &e);
    Operand deref(const Expr &e);
    Operand pointed(const Expr &e, const Type &pointer);
    Operand address_of(const Expr &e);
    Operand str(const Expr &e);
    Operand buf(const Expr &e);
    Operand usym(const Expr &e);

    // lower_values.cc: loads, conversions, showing
    Operand through_reference(Operand operand);
    const Type &rvalue(const Expr &e, Operand &operand); // scalar, text: on the stack
    void load(Operand &operand);
    void load_bit_field(Operand &operand);
    void object_of(const Operand &operand);
    void settle_address(Operand &operand);
    bool text_value(const Expr &e, Operand &operand, std::uint64_t length); // makes a text of a char * or char array
    void convert(const Type &from, const Type &to);
    void truth(const Expr &e, Operand &operand);
    std::size_t show(const Expr &e, Operand operand, Style style, bool follow);
    std::size_t show_scalar(const Operand &operand, Style style, bool follow);
    std::size_t show_pointer(const Operand &operand, Style style, bool follow);
    std::size_t show_object(Operand operand);

    // lower_contents.cc: objects by what they hold
    class Contents;
    void address_of_object(Operand &operand); // leaves an address, also of one that is in registers
    bool show_contents(Operand &operand);     // of a library's type, or of an object with parts of such types
    void show_part(const Type &type);         // of the object whose address is on the stack
    void to_virtual_base(std::int64_t at);

    // lower_operators.cc: C's operators
    Operand unary(const Expr &e);
    Operand binary(const Expr &e);
    Operand logical(const Expr &e);
    Operand conditional(const Expr &e);
    Operand cast(const Expr &e);
    void move_between_bases(const Type &from, const Type &to);
    Operand size_of(const Expr &e);
    const Type *type_named(const TypeName &name);
    const Type *size_of_what(const Expr &e);
    Operand arithmetic(const Expr &e, const Type &left, const Type &right);
    Operand shift(const Expr &e, const Type &left);
    Operand compare(const Expr &e, const Type &left, const Type &right);
    Operand compare_text(const Expr &e);
    std::int64_t step_of(const Expr &e, const Type *element);
    Operand pointer_arithmetic(const Expr &e, const Type &left, const Type &right);
    bool captured_comparison(const Expr &e, Operand &result);
    void second_to_common(const Type &left, const Type &right, const Type &to);

    void put(Instr instr) { out_.push_back(instr); }
    void put(Opcode op) { out_.push_back(Instr{.op = op}); }
    std::size_t jump(Opcode op); // its target is set later
    void land(std::size_t jump);
    std::vector<Instr> aside(std::size_t from); // takes the instructions from there on out
    const Type &pointer_to(const Type &target);
    bool in_table(const Type &type);
    std::string text_of(const Expr &e) const;
    [[noreturn]] void misfit(const Expr &e, std::string message, std::string hint = {}) const;

    Code &code_;
    Scope &scope_;
    const Tree &tree_;
    Instrs &out_;
    ArgumentCapture *capture_;
    int held_in_ = 0;           // objects whose contents are being shown
    bool in_interface_ = false; // what an interface holds is being shown
};

} // namespace ktrace::program
