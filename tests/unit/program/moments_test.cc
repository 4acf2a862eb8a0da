// Moments: what entry, post, call and ret write, what a return probe keeps from its entry, what is read for each.
#include <gtest/gtest.h>

#include "bench.h"

namespace ktrace::program::test {
namespace {

using Kind = Type::Kind;

class Moments : public testing::Test {
  protected:
    Bench bench;
    FakeScope entry, after;
    const Type *int_ = entry.scalar(Kind::integer, 4, true, "int");
    const Type *char_ = entry.scalar(Kind::char_, 1, true, "char");
    const Type *string = entry.pointer(char_);
    const Type *point = make_point();
    const Type *point_pointer = entry.pointer(point);

    const Type *make_point() {
        Member x, y;
        x.name = "x";
        y.name = "y";
        x.type = y.type = int_;
        y.offset = 4;
        return entry.record("struct point", 8, {x, y});
    }
    /// The scope at the return: the entry's types, no arguments.
    struct ReturnScope : FakeScope {
        const value::TypeTable *shared = nullptr;
        const value::TypeTable *types() override { return shared; }
    } ret;

    void SetUp() override {
        entry.arguments["n"] = {int_, Place::in_register(5)};
        entry.arguments["name"] = {string, Place::in_register(4)};
        entry.arguments["p"] = {point_pointer, Place::in_register(1)};
        entry.arguments["v"] = {point, Place::in_register(2)};
        ret.shared = &entry.table;
        ret.at_return = true;
        ret.result = Binding{int_, Place::in_register(0)};
        bench.reg(5) = 3;
        bench.reg(4) = 0x2000;
        bench.reg(1) = 0x3000;
        bench.reg(2) = 6UL << 32 | 5;
        bench.memory.put_text(0x2000, "alice");
        bench.memory.put(0x3000, std::array<int, 2>{1, 2});
    }
    Recipe recipe(char kind) {
        Recipe made;
        made.kind = kind;
        made.entry = &entry;
        made.after = kind == 'r' ? static_cast<Scope *>(&ret) : &entry;
        for (const char *name : {"n", "name", "p", "v"}) made.arguments.push_back({name, entry.arguments[name], false});
        return made;
    }
    /// Registers and memory when the call has returned.
    void return_with(int value) {
        bench.registers = {};
        bench.reg(0) = static_cast<std::uint64_t>(value);
        bench.duration = 1234;
        bench.memory.put_text(0x2000, "freed");
        bench.memory.put(0x3000, std::array<int, 2>{100, 200});
    }
    int raw_int(const Node &node) {
        int value = 0;
        std::memcpy(&value, node.bytes.data(), std::min<std::size_t>(node.bytes.size(), 4));
        return value;
    }
};

TEST_F(Moments, EntryShowsTypedArguments) {
    Recipe wanted = recipe('j');
    wanted.shows_arguments = true;
    Built built = build(wanted);
    auto state = bench.state(wanted);
    ASSERT_EQ(bench.run(built.program, Moment::entry, *state), Outcome::event);
    auto nodes = bench.nodes();
    ASSERT_EQ(nodes.size(), 4U);
    EXPECT_EQ(raw_int(nodes[0]), 3);
    EXPECT_EQ(nodes[1].text(), "alice");
    EXPECT_EQ(nodes[2].tag, Tag::pointee);
    EXPECT_EQ(nodes[2].number, 0x3000U);
    EXPECT_EQ(nodes[2].type, point->index);
    EXPECT_EQ(raw_int(nodes[2]), 1);
    EXPECT_EQ(nodes[3].type, point->index);
    EXPECT_EQ(raw_int(nodes[3]), 5);
    auto &fields = built.fields[static_cast<std::size_t>(Moment::entry)];
    ASSERT_EQ(fields.size(), 4U);
    EXPECT_EQ(fields[1].name, "name");
    EXPECT_EQ(fields[1].role, Field::Role::argument);
    auto header = read_header(bench.record);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->moment, Moment::entry);
    EXPECT_EQ(header->time_ns, 5000U);
    EXPECT_EQ(header->tid, 101);
}

TEST_F(Moments, ReturnKeepsTheArgumentsOfItsEntry) {
    Recipe wanted = recipe('r');
    wanted.shows_arguments = wanted.shows_result = true;
    wanted.result = ret.result;
    wanted.print = {bench.tree("args.name"),          bench.tree("args.p->y"),
                    bench.tree("retval + args.n"),    bench.tree("retval == 42 && args.name == \"alice\""),
                    bench.tree("retval + args.p->y"), bench.tree("duration"),
                    bench.tree("args.v.y + retval"),  bench.tree("arg0 + 1")};
    Built built = build(wanted);
    ASSERT_TRUE(built.misfits.empty()) << built.misfits[0].error.message;
    auto state = bench.state(wanted);
    ASSERT_EQ(bench.run(built.program, Moment::call, *state), Outcome::accepted);
    EXPECT_LE(bench.capture.size(), built.program.capture_size());
    return_with(42);
    ASSERT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::event);
    auto nodes = bench.nodes();
    ASSERT_EQ(nodes.size(), 13U);
    ASSERT_EQ(built.fields[static_cast<std::size_t>(Moment::ret)].size(), 13U);
    EXPECT_EQ(raw_int(nodes[0]), 3);
    EXPECT_EQ(nodes[1].text(), "alice");
    EXPECT_EQ(raw_int(nodes[2]), 1); // the pointee as it was
    EXPECT_EQ(raw_int(nodes[4]), 42);
    EXPECT_EQ(nodes[5].text(), "alice");
    EXPECT_EQ(raw_int(nodes[6]), 2);
    EXPECT_EQ(nodes[7].sint(), 45);
    EXPECT_EQ(nodes[8].sint(), 1);
    EXPECT_EQ(nodes[9].sint(), 242); // with retval an EXPR looks at memory as it is now
    EXPECT_EQ(nodes[10].number, 1234U);
    EXPECT_EQ(nodes[11].sint(), 48);
    EXPECT_EQ(nodes[12].sint(), 4);
    EXPECT_EQ(read_header(bench.record)->duration_ns, 1234U);
}

TEST_F(Moments, TextReturnProbesReadNothingAtEntry) {
    Recipe wanted = recipe('r');
    wanted.shows_result = true;
    wanted.result = ret.result;
    Built built = build(wanted);
    EXPECT_FALSE(built.program.needs(Moment::call).runs);
    EXPECT_EQ(built.program.capture_size(), 0U);
    EXPECT_TRUE(built.program.needs(Moment::ret).registers);
    EXPECT_TRUE(built.program.needs(Moment::ret).time);
    EXPECT_TRUE(built.program.needs(Moment::ret).duration);
    auto state = bench.state(wanted);
    return_with(7);
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::event);
    EXPECT_EQ(raw_int(bench.nodes().at(0)), 7);
}

TEST_F(Moments, ConditionsAreDecidedAtEntryUnlessTheyUseTheOutcome) {
    Recipe wanted = recipe('r');
    wanted.condition = bench.tree("args.n == 4");
    Built built = build(wanted);
    auto state = bench.state(wanted);
    EXPECT_EQ(bench.run(built.program, Moment::call, *state), Outcome::filtered);
    bench.reg(5) = 4;
    EXPECT_EQ(bench.run(built.program, Moment::call, *state), Outcome::accepted);
    return_with(1);
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::event);

    wanted = recipe('r');
    wanted.condition = bench.tree("retval < 0 && args.n == 4");
    built = build(wanted);
    bench.reg(5) = 4;
    EXPECT_EQ(bench.run(built.program, Moment::call, *state), Outcome::accepted);
    return_with(-1);
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::event);
    return_with(1);
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::filtered);

    wanted.condition = bench.tree("duration > 1000");
    built = build(wanted);
    EXPECT_FALSE(built.program.needs(Moment::call).runs);
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::event);
    bench.duration = 999;
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::filtered);
}

TEST_F(Moments, AResultInMemoryIsWhereARegisterPointedAtTheEntry) {
    Place place;
    place.pieces.emplace_back().ops.push_back(
        {.code = value::Op::Code::entry_register, .size = 8, .reg = 1, .operand = 0});
    ret.result = Binding{point, place};
    Recipe wanted = recipe('r');
    wanted.arguments.clear();
    wanted.shows_result = true;
    wanted.result = ret.result;
    wanted.condition = bench.tree("retval.y == 20");
    wanted.print = {bench.tree("retval.x")};
    Built built = build(wanted);
    ASSERT_TRUE(built.misfits.empty()) << built.misfits[0].error.message;
    auto state = bench.state(wanted);
    ASSERT_EQ(bench.run(built.program, Moment::call, *state), Outcome::accepted);
    return_with(0);
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::filtered);
    bench.memory.put(0x3000, std::array<int, 2>{10, 20});
    ASSERT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::event);
    auto nodes = bench.nodes();
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(raw_int(nodes[0]), 10); // retval
    EXPECT_EQ(raw_int(nodes[1]), 10);
}

TEST_F(Moments, SelectionFollowsTheFilterWhereverThatIs) {
    Recipe wanted = recipe('r');
    wanted.selection.every = 2;
    Built built = build(wanted);
    auto state = bench.state(wanted);
    EXPECT_EQ(bench.run(built.program, Moment::call, *state), Outcome::unselected);
    EXPECT_EQ(bench.run(built.program, Moment::call, *state), Outcome::accepted);
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::event);

    wanted.condition = bench.tree("retval == 1");
    built = build(wanted);
    state = bench.state(wanted);
    EXPECT_FALSE(built.program.needs(Moment::call).runs);
    return_with(1);
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::unselected);
    return_with(2);
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::filtered);
    return_with(1);
    EXPECT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::event);
}

TEST_F(Moments, CountingReadsNothing) {
    Recipe wanted = recipe('k');
    wanted.table = Table::Kind::count;
    Built built = build(wanted);
    Needs needs = built.program.needs(Moment::pre);
    EXPECT_TRUE(needs.runs);
    EXPECT_FALSE(needs.registers);
    EXPECT_FALSE(needs.floating);
    EXPECT_FALSE(needs.time);
    EXPECT_FALSE(needs.duration);
    EXPECT_FALSE(built.program.needs(Moment::post).runs);
    auto state = bench.state(wanted);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(bench.run(built.program, Moment::pre, *state), Outcome::aggregated);
    EXPECT_EQ(bench.memory.reads, 0);
    Table table = state->aggregation.snapshot();
    ASSERT_EQ(table.rows.size(), 1U);
    EXPECT_EQ(table.rows[0].count, 5U);
    EXPECT_TRUE(table.rows[0].key.empty());
}

TEST_F(Moments, TablesSeeAllHitsThatPassTheFilter) {
    Recipe wanted = recipe('k');
    wanted.table = Table::Kind::count;
    wanted.selection.every = 2;
    wanted.condition = bench.tree("args.n != 4");
    Built built = build(wanted);
    auto state = bench.state(wanted);
    for (int n : {3, 4, 5, 6}) {
        bench.reg(5) = static_cast<std::uint64_t>(n);
        bench.run(built.program, Moment::pre, *state);
    }
    EXPECT_EQ(state->aggregation.snapshot().rows[0].count, 3U);
}

TEST_F(Moments, TablesOfReturnsByArgument) {
    const Type *op = entry.enumeration({{"OP_READ", 0}, {"OP_WRITE", 1}});
    entry.arguments["op"] = {op, Place::in_register(5)};
    Recipe wanted = recipe('r');
    wanted.table = Table::Kind::stats;
    wanted.table_of = bench.tree("duration");
    wanted.by = {bench.tree("args.op"), bench.tree("args.name"), bench.tree("retval")};
    Built built = build(wanted);
    ASSERT_TRUE(built.misfits.empty());
    auto state = bench.state(wanted, {"args.op", "args.name", "retval"}, "duration");
    for (std::uint64_t i = 0; i < 10; ++i) {
        bench.registers = {};
        bench.reg(5) = i % 2;
        bench.reg(4) = 0x2000 + 0x100 * i; // the same text in many places
        bench.memory.put_text(bench.reg(4), "bob");
        ASSERT_EQ(bench.run(built.program, Moment::call, *state), Outcome::accepted);
        bench.reg(0) = 7;
        bench.duration = 100 * (i + 1);
        ASSERT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::aggregated);
    }
    Table table = state->aggregation.snapshot();
    ASSERT_EQ(table.rows.size(), 2U);
    const Row &row = table.rows[table.rows[0].key.at(0).text == std::string(4, '\0') ? 0 : 1];
    EXPECT_EQ(row.key[0].tag, Tag::raw);
    EXPECT_EQ(row.key[0].type, op->index);
    EXPECT_EQ(row.key[0].text, std::string(4, '\0')); // OP_READ
    EXPECT_EQ(row.key[1].text, "bob");
    EXPECT_EQ(static_cast<std::int64_t>(row.key[2].number), 7);
    EXPECT_EQ(row.stats.count, 5U);
    EXPECT_EQ(row.stats.avg, 500);
    EXPECT_EQ(row.stats.min.bits, 100U);
    EXPECT_EQ(row.stats.max.bits, 900U);
}

TEST_F(Moments, PostHasItsOwnValues) {
    Recipe wanted = recipe('k');
    wanted.post = wanted.regs = true;
    wanted.print = {bench.tree("args.n")};
    wanted.post_print = {bench.tree("reg(\"" + bench.reg_name(0) + "\")")};
    Built built = build(wanted);
    auto state = bench.state(wanted);
    EXPECT_TRUE(built.program.needs(Moment::post).runs);
    bench.reg(0) = 77;
    ASSERT_EQ(bench.run(built.program, Moment::post, *state), Outcome::event);
    auto nodes = bench.nodes();
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[0].number, 77U);
    EXPECT_EQ(nodes[1].tag, Tag::registers);
    EXPECT_EQ(nodes[1].bytes.size(), sizeof(arch::Host::Registers));
}

TEST_F(Moments, MisfitsAreToldAndBecomeNothing) {
    Recipe wanted = recipe('k');
    wanted.print = {bench.tree("args.foo"), bench.tree("args.n")};
    Built built = build(wanted);
    ASSERT_EQ(built.misfits.size(), 1U);
    EXPECT_EQ(built.misfits[0].tree, wanted.print[0]);
    auto state = bench.state(wanted);
    bench.run(built.program, Moment::pre, *state);
    auto nodes = bench.nodes();
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[0].tag, Tag::na);
    EXPECT_EQ(raw_int(nodes[1]), 3);
    wanted.print.clear();
    wanted.condition = bench.tree("args.foo == 1");
    built = build(wanted);
    EXPECT_EQ(bench.run(built.program, Moment::pre, *state), Outcome::filtered);
    wanted = recipe('r');
    wanted.condition = bench.tree("retval.foo == 1");
    built = build(wanted);
    EXPECT_EQ(bench.run(built.program, Moment::call, *state), Outcome::filtered);
}

TEST_F(Moments, RecordsNeverOverflow) {
    entry.variables["big"] = {entry.array(int_, 1000), Place::at_register(arch::Host::stack_pointer_dwarf, 0)};
    bench.registers.sp = 0x8000;
    bench.memory.put(0x8000, std::array<int, 1000>{1, 2, 3});
    Recipe wanted = recipe('j');
    for (int i = 0; i < 500; ++i) wanted.arguments.push_back({"a", entry.variables["big"], false});
    wanted.shows_arguments = true;
    Built built = build(wanted);
    auto state = bench.state(wanted);
    ASSERT_EQ(bench.run(built.program, Moment::entry, *state), Outcome::event);
    RecordReader reader = RecordReader::of(bench.record);
    std::size_t count = 0;
    while (reader.next()) ++count;
    EXPECT_TRUE(reader.ok());
    EXPECT_EQ(count, 504U);
    wanted.kind = 'r';
    wanted.after = &ret;
    built = build(wanted);
    ASSERT_EQ(bench.run(built.program, Moment::call, *state), Outcome::accepted);
    ASSERT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::event);
    EXPECT_EQ(bench.nodes().size(), 504U);
}

TEST_F(Moments, DamagedCapturesHaveNoValues) {
    Recipe wanted = recipe('r');
    wanted.shows_arguments = true;
    wanted.print = {bench.tree("retval + args.n")};
    Built built = build(wanted);
    auto state = bench.state(wanted);
    bench.capture.clear();
    ASSERT_EQ(bench.run(built.program, Moment::ret, *state), Outcome::event);
    for (const Node &node : bench.nodes()) EXPECT_EQ(node.tag, Tag::na);
    EXPECT_EQ(bench.nodes().size(), 5U);
}

TEST(RecordReader, RefusesWhatIsNoRecord) {
    EXPECT_FALSE(read_header({}));
    std::vector<std::byte> bytes(sizeof(RecordHeader) + 9, std::byte{0xff});
    EXPECT_FALSE(read_header(bytes));
    RecordReader reader(bytes);
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.ok());
    std::vector<std::byte> cut = {std::byte{static_cast<std::uint8_t>(Tag::string)}, std::byte{1}};
    RecordReader short_one(cut);
    EXPECT_FALSE(short_one.next());
    EXPECT_FALSE(short_one.ok());
}

} // namespace
} // namespace ktrace::program::test
