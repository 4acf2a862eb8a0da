// Dwarf: what the debug information of one module says: functions, parameters, types, lines, inlined instances,
// variables. DWARF 4 and 5, with split DWARF where the .dwo files are found. The only user of libdw beside unwind.cc.
//
// Invariants: addresses are the file's own (vaddr); Types and Functions live as long as the Dwarf; names are indexed
// once, lazily; nothing here trusts the file (bounds on depth, counts and sizes).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "value/place.h"
#include "value/type.h"

namespace ktrace::symbols {

struct Parameter {
    std::string name; // empty where it has none
    const value::Type *type = nullptr;
    bool artificial = false; // made by the compiler: `this`
    bool dropped = false; // the source has it, this optimized copy (.isra, .constprop) does not: it is passed nowhere
    bool by_reference = false;         // its address is passed, though its type does not say so (Fortran, Ada, Pascal)
    bool promoted = false;             // it is a float that is passed as a double
    std::optional<std::size_t> length; // a text of Fortran's: the parameter that is its length
    bool is_length = false;            // that of another one, made by the compiler
};

/// A function with code of its own (out of line).
struct Function {
    std::string name;        // DW_AT_name
    std::string linkage;     // DW_AT_linkage_name, or empty
    std::string qualified;   // with namespaces and classes: Foo::bar
    std::uint64_t entry = 0; // DW_AT_entry_pc, else the lowest address of the first range
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges; // [low, high)
    const value::Type *result = nullptr;                         // nullptr: void
    std::vector<const value::Type *>
        results;                       // Go: all of them, which `result` has as its members where they are several
    std::vector<Parameter> parameters; // `this` included
    bool variadic = false;
    // Callers do not keep the calling convention (as its language has another one, or optimizers changed it): only what
    // entry_places gives is known of its parameters.
    bool own_convention = false;
    bool result_known = true; // false: it may be returned in another way than C does
    bool typed = true;        // false: only names and lines are known (assembly, -g1)
    std::string file;
    int line = 0;
    std::uint64_t die = 0; // offset of its DIE
};

/// The code of a function, out of line.
struct DescribedCode {
    std::string qualified; // without arguments of the function
    std::string linkage;   // or empty
    std::uint64_t entry = 0;
    std::uint64_t end = 0; // of the range that begins there
};

/// A place where the code of an inlined function begins.
struct InlinedInstance {
    std::string name, qualified, linkage;
    std::uint64_t entry = 0;
    std::string into;           // the function that it was inlined into (linkage name where it has one)
    std::uint32_t instance = 0; // distinguishes it from others, also from those that begin at the same address; never 0
};

/// An address where the code of a source line begins (is_stmt rows; one per function and contiguous range).
struct LineAddress {
    std::uint64_t vaddr = 0;
    std::string file; // as the line table names it, full path where known
    int line = 0;
};

struct Variable {
    const value::Type *type = nullptr;
    value::Place place; // addresses of statics are vaddrs + the bias given
};

/// A type of Go's that has a descriptor, which interfaces refer to.
struct DescribedType {
    std::string name;             // with the whole path of its package: `net/http.Request`
    std::uint64_t descriptor = 0; // from the start of all descriptors, or its vaddr
    std::uint64_t die = 0;        // its number
};

/// A frame of the source at an address: innermost inlined function first, the real function last.
struct SourceFrame {
    std::string function; // qualified
    std::string file;
    int line = 0;
    bool inlined = false;
};

class NamePattern;

class Dwarf {
  public:
    /// Opens the debug information in the ELF file `path` (or that `fd` refers to, when it is >= 0; it is duplicated).
    /// Where that is a separate debug file, `image_path` (or image_fd) is the file that is loaded: call frame
    /// information has its bytes only there, and without it variables relative to the CFA are not found. Errors:
    /// not_found (no such file, no debug information), denied, refused (damaged).
    static Result<std::unique_ptr<Dwarf>> open(const std::string &path, int fd = -1, const std::string &image_path = {},
                                               int image_fd = -1);
    ~Dwarf();
    Dwarf(const Dwarf &) = delete;

    /// The first file of those with debug information of their own (.dwo) that could not be read so far: a
    /// clause; empty: nothing was missing.
    const std::string &missing_part() const;

    const value::TypeTable &types() const;
    /// `type` (of types()) with what lies behind its pointers filled in for some more hops, and a declaration made
    /// whole where any unit defines it. Functions and variables come with three hops; a structure beyond is
    /// `incomplete` and has no members until this is asked for it. Types keep their addresses. Gives back `type`.
    const value::Type *complete(const value::Type *type);

    /// Go's structures, arrays, slices and complex numbers that have descriptors.
    const std::vector<DescribedType> &described_types();
    const value::Type *type_of(const DescribedType &type);

    /// A struct, union, class, enum or typedef by name (`struct foo`, `foo_t`, `ns::Foo`), whichever unit defines it;
    /// the whole file may be looked at. A definition before a declaration. nullptr: there is none.
    const value::Type *type_named(std::string_view name);

    /// The function whose entry or code is at vaddr. Only the one compilation unit is read (by .debug_aranges, else by
    /// the units' ranges).
    const Function *function_at(std::uint64_t vaddr);
    /// A function of another file, as this one declares it where it calls it: types, and perhaps names, of parameters.
    /// nullptr: it does not, or there is too much to look through.
    const Function *declared_function(std::string_view linkage);
    /// Where its parameters lie at its first instruction, in order of `parameters`: a location-list entry that covers
    /// the entry, a constant, where optimizers changed the signature a location that holds everywhere; else nothing
    /// (the caller uses the calling convention, unless the function has its own).
    std::vector<std::optional<value::Place>> entry_places(const Function &function, std::uint64_t bias);

    /// All functions with this name: plain, linkage or qualified.
    std::vector<const Function *> functions_named(std::string_view name);
    /// The code of all functions that a pattern means by the names of the source, which symbols may not have: nested
    /// ones, those of modules, with an asm label or another prefix.
    std::vector<DescribedCode> described(const NamePattern &pattern);
    /// The code of all functions that have a name.
    std::vector<DescribedCode> described();
    /// All inlined instances of functions with this name, by address; several may begin at one address.
    std::vector<InlinedInstance> inlined(std::string_view name);
    /// All inlined instances of the functions that a pattern means, by function.
    std::vector<InlinedInstance> inlined(const NamePattern &pattern);
    /// The function that an inlined instance (InlinedInstance::instance) is of. It has no place of its own.
    const Function *inlined_function(std::uint32_t instance);
    /// The call that it stands for: file and line, and the function (an inlined one, too) that makes it. Nothing where
    /// there is no such instance.
    std::optional<SourceFrame> inlined_call(std::uint32_t instance);
    /// Names (qualified) of functions that have inlined instances or code: for globs and suggestions.
    std::vector<std::string> function_names();

    /// Where the code of FILE:LINE begins. `file` matches a line table's path by whole components from the end. A line
    /// without code gives nothing; `nearest_line` is the next one with code, or the file's last.
    std::vector<LineAddress> addresses_of(std::string_view file, int line);
    std::optional<int> nearest_line(std::string_view file, int line);
    /// Source files that the line tables name, for suggestions.
    std::vector<std::string> files();

    /// file and line of an address.
    std::optional<LineAddress> line_at(std::uint64_t vaddr);
    /// The chain of (inlined) functions at an address.
    std::vector<SourceFrame> frames_at(std::uint64_t vaddr);

    /// A variable by name as seen from vaddr: a local or parameter in scope, a static of the function or the unit, a
    /// global. `instance`: as seen from this inlined instance, which begins at vaddr; 0: from the innermost function
    /// there. Errors: not_found with the names in scope as a hint; refused where it is optimized out at vaddr.
    Result<Variable> variable(std::string_view name, std::uint64_t vaddr, std::uint64_t bias,
                              std::uint32_t instance = 0);
    /// A global or static variable by name, from nowhere in particular.
    Result<Variable> global(std::string_view name, std::uint64_t bias);
    /// Names of the locals and parameters in scope at vaddr, `instance` as above.
    std::vector<std::string> names_in_scope(std::uint64_t vaddr, std::uint32_t instance = 0);

    struct Impl;

  private:
    explicit Dwarf(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace ktrace::symbols
