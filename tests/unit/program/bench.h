// A test bench for programs: a scope, registers, memory and a thread that are all made up, and one hit run on them.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "program/eval/eval.h"
#include "program/lower/build.h"
#include "program/lower/types.h"
#include "program/run/program.h"
#include "program/tables/record_reader.h"
#include "program/tables/state.h"

namespace ktrace::program::test {

using value::Member;
using value::Place;
using value::Type;

/// Memory of separate blocks; counts reads.
class FakeMemory : public Memory {
  public:
    std::map<std::uint64_t, std::vector<std::byte>> blocks;
    int reads = 0;

    template <class T> void put(std::uint64_t at, const T &value) {
        auto &block = blocks[at];
        block.resize(sizeof value);
        std::memcpy(block.data(), &value, sizeof value);
    }
    void put_text(std::uint64_t at, const std::string &text) { // with its NUL
        auto &block = blocks[at];
        block.resize(text.size() + 1);
        std::memcpy(block.data(), text.c_str(), text.size() + 1);
    }
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        ++reads;
        std::size_t done = 0;
        while (done < into.size() && byte(at.value + done, into[done])) ++done;
        return done;
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }

  private:
    /// Whole 128-byte lines around a block are mapped (zero), as pages would be.
    bool byte(std::uint64_t at, std::byte &into) {
        for (const auto &[start, block] : blocks) {
            if (at >= (start & ~127UL) && at < start) {
                into = std::byte{0};
                return true;
            }
            if (at >= start && at < start + block.size()) {
                into = block[at - start];
                return true;
            }
        }
        return false;
    }
};

class FakeThread : public ThreadPort {
  public:
    arch::Host::FpRegisters fp;
    arch::Host::UpperRegisters upper_of_fp;
    bool has_fp = true;
    std::vector<std::uint64_t> frames;
    int asked = 0;

    const arch::Host::FpRegisters *floating() override { return has_fp ? &fp : nullptr; }
    const arch::Host::UpperRegisters *upper() override { return has_fp ? &upper_of_fp : nullptr; }
    std::string_view comm() override { return ++asked, "worker"; }
    std::optional<VirtAddr> tls(std::int64_t, std::uint64_t offset) override { return VirtAddr{0x7000 + offset}; }
    std::size_t stack(std::span<std::uint64_t> into) override {
        std::size_t count = std::min(into.size(), frames.size());
        std::copy_n(frames.begin(), count, into.begin());
        return count;
    }
};

/// Names and types that a test says.
class FakeScope : public Scope {
  public:
    value::TypeTable table;
    std::map<std::string, Binding, std::less<>> arguments, variables;
    std::map<std::string, const Type *, std::less<>> named_types;
    std::optional<Binding> result;
    contents::DynamicTypes held; // by interfaces
    bool at_return = false;

    const Type *scalar(Type::Kind kind, std::uint64_t size, bool is_signed, const std::string &name) {
        Type &type = table.make();
        type.kind = kind;
        type.size = size;
        type.is_signed = is_signed;
        type.name = name;
        return &type;
    }
    const Type *pointer(const Type *target) {
        Type &type = table.make();
        type.kind = Type::Kind::pointer;
        type.size = 8;
        type.target = target;
        type.name = target->name + " *";
        return &type;
    }
    const Type *record(const std::string &name, std::uint64_t size, std::vector<Member> members) {
        Type &type = table.make();
        type.kind = Type::Kind::structure;
        type.size = size;
        type.name = name;
        type.members = std::move(members);
        return &type;
    }
    const Type *array(const Type *element, std::uint64_t count) {
        Type &type = table.make();
        type.kind = Type::Kind::array;
        type.size = element->size * count;
        type.count = count;
        type.target = element;
        type.name = element->name + " [" + std::to_string(count) + "]";
        return &type;
    }
    const Type *enumeration(std::vector<value::Enumerator> values) {
        Type &type = table.make();
        type.kind = Type::Kind::enumeration;
        type.size = 4;
        type.name = "enum op";
        type.enumerators = std::move(values);
        return &type;
    }

    Result<Binding> argument(std::string_view name) override { return find(arguments, name, "parameter"); }
    Result<Binding> variable(std::string_view name) override { return find(variables, name, "variable"); }
    Result<Binding> integer_argument(unsigned n) override {
        static constexpr std::uint16_t dwarf[] = {5, 4, 1, 2, 8, 9};
        return Binding{nullptr, n < 6 ? Place::in_register(dwarf[n]) : Place::at_register(7, 8 + 8 * (n - 6))};
    }
    Result<Binding> retval() override {
        if (!result) return fail(Error::Kind::refused, "only a return probe knows retval");
        return *result;
    }
    const Type *type_named(std::string_view name) override {
        auto at = named_types.find(name);
        return at == named_types.end() ? nullptr : at->second;
    }
    std::optional<EnumeratorValue> enumerator(std::string_view) override { return std::nullopt; }
    std::string function() override { return "do_work"; }
    bool has_duration() override { return at_return; }
    contents::DynamicTypes dynamic_types(const Type &) override { return held; }
    const value::TypeTable *types() override { return &table; }

  private:
    static Result<Binding> find(const std::map<std::string, Binding, std::less<>> &where, std::string_view name,
                                const char *what) {
        auto at = where.find(name);
        if (at == where.end()) return fail(Error::Kind::refused, "no " + std::string(what) + " " + std::string(name));
        return at->second;
    }
};

/// One hit, and what came of it.
struct Bench {
    FakeScope scope;
    FakeMemory memory;
    FakeThread thread;
    arch::Host::Registers registers{};
    /// Where the nth integer argument of a function, or its result, lies.
    std::uint64_t &argument(std::size_t n) { return reg(integer_places(n + 1).back().pieces.at(0).reg); }
    std::uint64_t &result() { return reg(arch::Host::result_place(&integer()).pieces.at(0).reg); }
    /// The general register with this DWARF number.
    std::uint64_t &reg(int dwarf) {
        for (const arch::RegisterInfo &info : arch::Host::registers())
            if (info.file == arch::RegisterInfo::File::general && info.dwarf == dwarf)
                return *reinterpret_cast<std::uint64_t *>(reinterpret_cast<std::byte *>(&registers) + info.offset);
        throw std::runtime_error("no such register");
    }
    /// Its name.
    static std::string reg_name(int dwarf) {
        for (const arch::RegisterInfo &info : arch::Host::registers())
            if (info.file == arch::RegisterInfo::File::general && info.dwarf == dwarf) return std::string(info.name);
        throw std::runtime_error("no such register");
    }
    /// The nth register of floating-point arguments: its DWARF number, and where it is.
    std::pair<std::uint16_t, std::byte *> vector(std::size_t n) {
        value::Type real;
        real.kind = value::Type::Kind::floating;
        real.size = sizeof(double);
        const std::vector<const value::Type *> parameters(n + 1, &real);
        const std::uint16_t dwarf = arch::Host::parameter_places(parameters, &real).back().pieces.at(0).reg;
        for (const arch::RegisterInfo &info : arch::Host::registers())
            if (info.file == arch::RegisterInfo::File::floating && info.dwarf == dwarf)
                return {dwarf, reinterpret_cast<std::byte *>(&thread.fp) + info.offset};
        throw std::runtime_error("no such register");
    }
    std::uint64_t duration = 0;
    std::vector<std::byte> capture, record = std::vector<std::byte>(max_record);
    std::vector<Tree> trees; // kept for Recipes
    Outcome outcome = Outcome::filtered;

    Bench() { trees.reserve(64); }

    const Tree *tree(const std::string &text) {
        auto parsed = parse_expr(text);
        if (!parsed) throw std::runtime_error(text + ": " + parsed.error().message);
        trees.push_back(std::move(*parsed));
        return &trees.back();
    }
    Recipe recipe(char kind = 'k') {
        Recipe made;
        made.kind = kind;
        made.entry = &scope;
        made.after = &scope;
        return made;
    }
    ProbeStatePointer state(const Recipe &r, std::vector<std::string> by = {}, std::string of = {}) {
        return ProbeStatePointer(
            new ProbeState(r.selection, r.table, std::move(by), std::move(of), std::make_shared<TableMemory>()));
    }
    /// Runs the image where it was made, with a state of its own, and then a copy of it elsewhere, while nothing is
    /// left of the first: both do the same.
    Outcome run(const Program &program, Moment moment, ProbeState &probe) {
        int reads = memory.reads, asked = thread.asked;
        ProbeState rehearsal(probe);
        rehearsal.selector = std::make_shared<Selector>(*probe.selector);
        Hit first = hit(program.image(), moment, rehearsal);
        memory.reads = reads, thread.asked = asked;

        std::span<const std::byte> original = program.image().bytes();
        std::vector<std::byte> moved(original.begin(), original.end());
        std::span<std::byte> place(const_cast<std::byte *>(original.data()), original.size());
        std::ranges::fill(place, std::byte{0xcc});
        Hit second = hit(Image(moved), moment, probe);
        std::ranges::copy(moved, place.begin());
        if (first != second) throw std::runtime_error("a moved image does something else");

        outcome = second.outcome;
        record = std::move(second.record);
        if (moment == Moment::call) capture = std::move(second.capture);
        return outcome;
    }
    struct Hit {
        Outcome outcome = Outcome::filtered;
        std::vector<std::byte> capture, record = std::vector<std::byte>(max_record);
        bool operator==(const Hit &) const = default;
    };
    Hit hit(const Image &image, Moment moment, ProbeState &probe) {
        HitView view{registers, &memory, &thread, Pid{100}, Tid{101}, 5'000, 6'000, duration, capture};
        Hit made;
        made.capture.resize(image.header().capture_size);
        std::size_t captured = 0;
        made.outcome = eval(image, moment, view, probe, made.capture, captured, made.record);
        made.capture.resize(captured);
        return made;
    }
    std::vector<Node> nodes() {
        std::vector<Node> all;
        RecordReader reader = RecordReader::of(record);
        while (auto node = reader.next()) all.push_back(*node);
        return all;
    }
    /// The value of one EXPR as --print shows it. An EXPR that does not fit throws its message.
    Node print(const std::string &text) {
        Recipe wanted = recipe();
        wanted.print = {tree(text)};
        Built built = build(wanted);
        if (!built.misfits.empty()) throw std::runtime_error(built.misfits[0].error.message);
        auto probe = state(wanted);
        run(built.program, Moment::pre, *probe);
        return nodes().at(0);
    }
    /// Whether --if with this EXPR lets the hit pass.
    bool passes(const std::string &text) {
        Recipe wanted = recipe();
        wanted.condition = tree(text);
        Built built = build(wanted);
        if (!built.misfits.empty()) throw std::runtime_error(built.misfits[0].error.message);
        auto probe = state(wanted);
        return run(built.program, Moment::pre, *probe) == Outcome::event;
    }
    Error misfit(const std::string &text) {
        Recipe wanted = recipe();
        wanted.print = {tree(text)};
        Built built = build(wanted);
        if (built.misfits.empty()) throw std::runtime_error("`" + text + "` fits");
        return built.misfits[0].error;
    }

  private:
    static const value::Type &integer() {
        static const value::Type type = [] {
            value::Type made;
            made.kind = value::Type::Kind::integer;
            made.size = sizeof(std::uint64_t);
            return made;
        }();
        return type;
    }
    static std::vector<value::Place> integer_places(std::size_t count) {
        const std::vector<const value::Type *> parameters(count, &integer());
        return arch::Host::parameter_places(parameters, &integer());
    }
};

} // namespace ktrace::program::test
