// Any text as an EXPR: parsed, compiled for a made-up function, and run on made-up registers and memory.
#include "../unit/program/bench.h"
#include "fuzz.h"

using namespace ktrace;
using namespace ktrace::program;

namespace {

/// One function of every kind of argument, made once.
struct Place : test::FakeScope {
    Place() {
        const auto *number = scalar(value::Type::Kind::integer, 4, true, "int");
        const auto *letter = scalar(value::Type::Kind::char_, 1, true, "char");
        const auto *real = scalar(value::Type::Kind::floating, 8, true, "double");
        value::Member x, y;
        x.name = "x";
        x.type = number;
        y.name = "y";
        y.type = real;
        y.offset = 8;
        const auto *pair = record("struct pair", 16, {x, y});
        arguments["n"] = {number, value::Place::in_register(5)};
        arguments["name"] = {pointer(letter), value::Place::in_register(4)};
        arguments["p"] = {pointer(pair), value::Place::in_register(1)};
        arguments["grid"] = {pointer(array(number, 8)), value::Place::in_register(2)};
        variables["v"] = {pair, value::Place::at_register(7, 16)};
        result = Binding{number, value::Place::in_register(0)};
        at_return = true;
        named_types["int"] = number;
        named_types["struct pair"] = pair;
    }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    auto tree = parse_expr(fuzz::text(data, size));
    if (!tree) {
        fuzz::require(!tree.error().message.empty() && tree.error().column <= static_cast<int>(size));
        return 0;
    }
    static Place scope;
    Recipe recipe;
    recipe.kind = 'k';
    recipe.entry = recipe.after = &scope;
    recipe.condition = &*tree;
    recipe.print = {&*tree};
    recipe.by = {&*tree};
    Built built = build(recipe);
    arch::Host::Registers registers{};
    test::FakeMemory memory;
    memory.put<std::uint64_t>(0, 0x1000);
    memory.put_text(0x1000, "text");
    test::FakeThread thread;
    HitView hit{registers, &memory, &thread, Pid{1}, Tid{1}, 0, 0, 0, {}};
    ProbeState state(recipe.selection, recipe.table, {}, {}, std::make_shared<TableMemory>());
    std::vector<std::byte> record(max_record);
    std::size_t captured = 0;
    if (eval(built.program.image(), Moment::pre, hit, state, {}, captured, record) != Outcome::event) return 0;
    RecordHeader header;
    std::memcpy(&header, record.data(), sizeof header);
    fuzz::require(header.size >= sizeof header && header.size <= max_record);
    return 0;
}
