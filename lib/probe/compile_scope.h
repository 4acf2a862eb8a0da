// LocationScope: what the names of an EXPR mean at a Location: parameters and variables from the debug information,
// argument registers and the return value from the calling convention.
//
// Invariants: the debug information is opened by the first name that needs it, and never for tid, comm, reg() and the
// like.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probe/resolve.h"
#include "program/expr/expr.h"
#include "program/lower/build.h"
#include "program/lower/scope.h"
#include "prototypes/prototypes.h"
#include "symbols/dwarf/dwarf.h"

namespace ktrace::probe {

/// When the names are looked at.
enum class Instant : std::uint8_t { before, after, at_return }; // the probed instruction; the function's end

class LocationScope final : public program::Scope {
  public:
    /// `location`, `modules` (all of the process, for types and errno) and `memory` (may be nullptr) are borrowed.
    /// `entry_probe`: the location is a function's first instruction by its kind (-j, -r). `before`: the scope of the
    /// same location before the instruction (borrowed), which has looked things up already.
    LocationScope(const Location &location, std::uint64_t bias, Instant instant, bool entry_probe,
                  std::span<const Loaded> modules, Memory *memory, LocationScope *before = nullptr)
        : location_(location), bias_(bias), instant_(instant), entry_probe_(entry_probe), modules_(modules),
          memory_(memory), before_(before) {}

    Result<program::Binding> argument(std::string_view name) override;
    Result<program::Binding> integer_argument(unsigned n) override;
    Result<program::Binding> variable(std::string_view name) override;
    Result<program::Binding> retval() override;
    Result<program::Binding> error_number() override;
    const value::Type *complete(const value::Type *type) override;
    const value::Type *type_named(std::string_view name) override;
    std::optional<program::EnumeratorValue> enumerator(std::string_view name) override;
    program::contents::DynamicTypes dynamic_types(const value::Type &interface) override;
    std::string function() override { return location_.symbol; }
    bool has_duration() override { return instant_ == Instant::at_return; }
    const value::TypeTable *types() override {
        if (prototype()) return &prototypes::types();
        if (declarer_) return &declarer_->types();
        if (dwarf_) return &dwarf_->types();
        return before_ ? before_->types() : nullptr;
    }

    /// A parameter by its name or its number, from 0; without debug information the Nth integer argument. The name goes
    /// to `shown`.
    Result<program::Binding> parameter(std::string_view name, std::string &shown);
    /// Makes the types of the location's module known.
    void open_debug_information() { dwarf(); }
    /// True where it is a function's first instruction.
    bool at_first_instruction() { return is_at_entry(); }
    /// All arguments by name, as -j shows them; without debug information the argument registers in hex.
    std::vector<program::NamedBinding> arguments();
    /// The function's return value; nothing: it is void.
    std::optional<program::Binding> result();
    /// True for a pointer to a structure of the C library, whose members other debug information may have: events show
    /// the pointer alone.
    bool is_only_declared(const value::Type *pointer);
    /// The errno that the result of a function of the C library means, 0 where it means none; nullptr: its result never
    /// means one, or errno is not known. Lives as long as this.
    const program::Tree *error_of_result();

  private:
    const prototypes::Prototype *prototype();
    const program::Tree *tree_of(std::string_view text);
    void add_buffers(std::vector<program::NamedBinding> &arguments);
    symbols::Dwarf *dwarf();
    const symbols::Function *described();
    const symbols::Function *declared();
    Error no_dwarf();
    bool is_at_entry();
    bool is_in_prologue();
    void find_places();
    const value::Type *type_of_parameter(std::size_t i) const; // as find_places has its place
    Result<program::Binding> in_thread(program::Binding binding, std::string_view name);
    Result<program::Binding> variable_here(std::string_view name);
    const value::Type *type_at_hand(std::string_view name);
    const value::Type *type_elsewhere(std::string_view name);

    const Location &location_;
    std::uint64_t bias_;
    Instant instant_;
    bool entry_probe_;
    std::span<const Loaded> modules_;
    Memory *memory_;
    LocationScope *before_;
    bool asked_prototype_ = false, asked_dwarf_ = false, asked_function_ = false;
    const prototypes::Prototype *prototype_ = nullptr; // where the function is one of the C library's
    std::deque<program::Tree> trees_;                  // of the prototype's EXPRs
    symbols::Dwarf *dwarf_ = nullptr;
    symbols::Dwarf *declarer_ = nullptr; // the program's, which declares the function; its module does not describe it
    std::vector<symbols::Dwarf *> others_; // of other modules, whose types are used
    const symbols::Function *function_ = nullptr;
    bool has_places_ = false;
    std::vector<value::Place> places_; // of function_->parameters, at the first instruction
};

} // namespace ktrace::probe
