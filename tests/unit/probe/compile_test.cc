// compile_all on programs that the test compiles: what debug information and the calling convention make of names.
#include <dlfcn.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "probe/compile.h"
#include "program/tables/record_reader.h"
#include "prototypes/prototypes.h"
#include "tests/unit/program/bench.h"
#include "tests/unit/symbols/workshop.h"

namespace ktrace::probe {
namespace {

using program::Moment;
using program::Node;
using program::Outcome;
using program::Tag;

constexpr const char *source = R"(
struct point { int x, y; };
enum op { OP_READ, OP_WRITE = 5 };
int counter = 77;
static __thread int local_counter = 3;
__attribute__((noipa)) int do_work(int n, const char *name, struct point *p, enum op op) {
    counter += n; local_counter += n;
    return n + p->x + name[0] + op;
}
__attribute__((noipa)) void nothing(double d, int i) { counter += i + (int)d; }
__attribute__((noipa)) struct point make(int x, int y) { struct point p = {x, y}; return p; }
struct wide { int x, y; double w; };
__attribute__((noipa)) int spread(struct wide v) { return v.x + (int)v.w; }
int main(int argc, char **argv) {
    struct point p = make(argc, 2);
    nothing(1.5, argc + spread((struct wide){argc, 2, 0.5}));
    return do_work(3, argv[0], &p, OP_WRITE);
}
)";
constexpr std::uint64_t bias = 0x100000;

class Compile : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        workshop = new symbols::Workshop;
        workshop->compile("debug", source, "-g -O0");
        workshop->compile("optimized", source, "-g -O2");
        workshop->compile("plain", source, "-O2");
        workshop->compile("exports",
                          "long exported_long = 1; static volatile long hidden_long = 2;\n"
                          "long main(void) { return exported_long + hidden_long; }",
                          "-O2");
    }
    static void TearDownTestSuite() {
        delete workshop;
        workshop = nullptr;
    }
    static inline symbols::Workshop *workshop = nullptr;

    program::test::Bench bench;
    Actions actions;

    LocationRequest request(const std::string &file, Kind kind, const char *symbol, std::uint64_t offset = 0) {
        LocationRequest made;
        made.number = 1;
        made.kind = kind;
        made.bias = bias;
        made.location.module = workshop->open(file);
        auto found = made.location.module->named(symbol);
        EXPECT_EQ(found.size(), 1U) << symbol;
        made.location.symbol = symbol;
        made.location.function = found.at(0)->vaddr;
        made.location.function_end = found.at(0)->vaddr + found.at(0)->size;
        made.location.vaddr = found.at(0)->vaddr + offset;
        made.location.offset = offset;
        return made;
    }
    std::vector<Compiled> compile(std::vector<LocationRequest> requests, CompileOptions options = {}) {
        kept = std::move(requests);
        auto compiled = compile_all(actions, kept, options);
        if (!compiled) throw std::runtime_error(compiled.error().message);
        return std::move(*compiled);
    }
    Error refusal(std::vector<LocationRequest> requests) {
        kept = std::move(requests);
        auto compiled = compile_all(actions, kept, {});
        return compiled ? Error{} : compiled.error();
    }
    std::vector<Node> run(const Compiled &compiled, Moment moment) {
        auto state = make_probe_state(actions, std::make_shared<program::TableMemory>());
        EXPECT_EQ(bench.run(compiled.program, moment, *state), Outcome::event);
        return bench.nodes();
    }
    std::int64_t integer(const Node &node) {
        if (node.tag != Tag::raw) return node.sint();
        std::int32_t value = 0;
        std::memcpy(&value, node.bytes.data(), std::min<std::size_t>(node.bytes.size(), 4));
        return value;
    }
    void call_do_work() {
        bench.argument(0) = 0xffffffff'00000003;
        bench.argument(1) = 0x2000;
        bench.argument(2) = 0x3000;
        bench.argument(3) = 5;
        bench.memory.put_text(0x2000, "alice");
        bench.memory.put(0x3000, std::array<int, 2>{8, 9});
    }
    std::vector<LocationRequest> kept; // their modules own the types
};

TEST_F(Compile, EntryProbesShowTypedArguments) {
    call_do_work();
    for (const char *file : {"debug", "optimized"}) {
        auto compiled = compile({request(file, Kind::entry, "do_work")});
        auto nodes = run(compiled[0], Moment::entry);
        auto &fields = compiled[0].info.fields[static_cast<std::size_t>(Moment::entry)];
        ASSERT_EQ(nodes.size(), 4U) << file;
        EXPECT_EQ(fields[1].name, "name");
        EXPECT_EQ(integer(nodes[0]), 3) << file;
        EXPECT_EQ(nodes[1].text(), "alice") << file;
        EXPECT_EQ(nodes[2].tag, Tag::pointee) << file;
        EXPECT_EQ(compiled[0].info.types->at(nodes[2].type).name, "struct point");
        EXPECT_EQ(integer(nodes[3]), 5) << file;
    }
}

TEST_F(Compile, WithoutDebugInformationArgumentsAreRegisters) {
    call_do_work();
    auto compiled = compile({request("plain", Kind::entry, "do_work")});
    auto nodes = run(compiled[0], Moment::entry);
    ASSERT_EQ(nodes.size(), 6U);
    EXPECT_EQ(nodes[0].tag, Tag::hex);
    EXPECT_EQ(nodes[0].number, 0xffffffff'00000003);
    EXPECT_EQ(compiled[0].info.fields[static_cast<std::size_t>(Moment::entry)][5].name, "arg5");
    actions.print = {"1 + args.n"};
    Error error = refusal({request("plain", Kind::entry, "do_work")});
    EXPECT_EQ(error.kind, Error::Kind::refused);
    EXPECT_NE(error.message.find("no DWARF"), std::string::npos) << error.message;
    EXPECT_EQ(error.column, 4);
    EXPECT_EQ(error.width, 6);
    EXPECT_EQ(error.source, "1 + args.n");
}

TEST_F(Compile, ArgumentsInThePrologueAreInTheirRegisters) {
    call_do_work();
    actions.print = {"args.n", "args.name", "arg0"};
    // endbr64 or push %rbp: the frame that the debug information describes is not there yet
    for (std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4}}) {
        auto compiled = compile({request("debug", Kind::probe, "do_work", offset)});
        auto nodes = run(compiled[0], Moment::pre);
        EXPECT_EQ(integer(nodes[0]), 3) << offset;
        EXPECT_EQ(nodes[1].text(), "alice") << offset;
        EXPECT_EQ(integer(nodes[2]), 3) << offset;
    }
}

TEST_F(Compile, StructsInSeveralRegistersToo) {
    bench.argument(0) = 2UL << 32 | 1;
    double w = 0.5;
    std::memcpy(&bench.argument(1), &w, 8); // where it is passed like the integers
    std::memcpy(bench.vector(0).second, &w, 8);
    actions.print = {"args.v.y", "args.v.w * 2", "args.v"};
    for (std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{4}}) {
        auto compiled = compile({request("debug", Kind::probe, "spread", offset)});
        auto nodes = run(compiled[0], Moment::pre);
        EXPECT_EQ(integer(nodes[0]), 2) << offset;
        EXPECT_EQ(nodes[1].floating, 1.0) << offset;
        EXPECT_EQ(nodes[2].bytes.size(), 16U) << offset;
    }
}

TEST_F(Compile, NamesOfVariablesTypesAndEnumerators) {
    call_do_work();
    auto wanted = request("debug", Kind::probe, "do_work");
    std::uint64_t counter = wanted.location.module->named("counter").at(0)->vaddr;
    bench.memory.put(counter + bias, 77);
    actions.print = {"var.counter", "counter + 1", "args.op == OP_WRITE", "args.p->y", "((struct point *)arg2)->x",
                     "arg2"};
    auto compiled = compile({wanted});
    auto nodes = run(compiled[0], Moment::pre);
    EXPECT_EQ(integer(nodes[0]), 77);
    EXPECT_EQ(integer(nodes[1]), 78);
    EXPECT_EQ(integer(nodes[2]), 1);
    EXPECT_EQ(integer(nodes[3]), 9);
    EXPECT_EQ(integer(nodes[4]), 8);
    EXPECT_EQ(nodes[5].tag, Tag::hex);
}

TEST_F(Compile, IntegerArgumentsAreThoseOfTheirRegisters) {
    actions.print = {"arg0", "args.d"};
    bench.argument(0) = 0xffffffff'fffffff9;
    double d = 1.5;
    std::memcpy(bench.vector(0).second, &d, 8);
    auto compiled = compile({request("optimized", Kind::probe, "nothing")}); // (double d, int i): i is in rdi
    EXPECT_TRUE(compiled[0].program.needs(Moment::pre).floating);
    auto nodes = run(compiled[0], Moment::pre);
    EXPECT_EQ(integer(nodes[0]), -7);
    EXPECT_EQ(std::memcmp(nodes[1].bytes.data(), &d, 8), 0);
}

TEST_F(Compile, ReturnValues) {
    actions.no_args = true;
    auto compiled = compile({request("debug", Kind::ret, "do_work"), request("debug", Kind::ret, "nothing"),
                             request("debug", Kind::ret, "make"), request("plain", Kind::ret, "do_work")});
    bench.result() = 9UL << 32 | 42;
    EXPECT_EQ(integer(run(compiled[0], Moment::ret).at(0)), 42);
    EXPECT_FALSE(compiled[0].info.result_void);
    EXPECT_TRUE(compiled[1].info.result_void);
    EXPECT_TRUE(run(compiled[1], Moment::ret).empty());
    auto nodes = run(compiled[2], Moment::ret);
    ASSERT_EQ(nodes.at(0).bytes.size(), 8U);
    int y = 0;
    std::memcpy(&y, nodes[0].bytes.data() + 4, 4);
    EXPECT_EQ(y, 9);
    EXPECT_EQ(run(compiled[3], Moment::ret).at(0).sint(), static_cast<std::int64_t>(9UL << 32 | 42));
}

TEST_F(Compile, AResultOfNoTypeComparesAsANegativeOneOf32Bits) {
    actions.print = {"retval < 0", "retval + 0", "(uint64)retval == 4294967295", "retval"};
    auto compiled = compile({request("plain", Kind::ret, "do_work")});
    auto values = [&](std::uint64_t result) {
        bench.result() = result;
        std::vector<std::int64_t> all;
        auto nodes = run(compiled[0], Moment::ret);
        for (std::size_t i = 1; i < nodes.size(); ++i) all.push_back(integer(nodes[i])); // behind the result
        return all;
    };
    EXPECT_EQ(values(0xffffffff), (std::vector<std::int64_t>{1, -1, 1, 0xffffffff}));
    EXPECT_EQ(values(0x7fffffff), (std::vector<std::int64_t>{0, 0x7fffffff, 0, 0x7fffffff}));
    EXPECT_EQ(values(0x1'ffffffff), (std::vector<std::int64_t>{0, 0x1'ffffffff, 0, 0x1'ffffffff}));
    EXPECT_EQ(values(~0UL), (std::vector<std::int64_t>{1, -1, 0, -1}));
}

/// Of the C library that this test itself runs with: all values that the table promises are there.
TEST_F(Compile, FunctionsOfTheCLibraryHaveAllThatTheirPrototypesSay) {
    Dl_info here{};
    ASSERT_NE(::dladdr(reinterpret_cast<void *>(&::getppid), &here), 0);
    auto libc = symbols::Module::open(here.dli_fname, here.dli_fname);
    ASSERT_TRUE(libc) << here.dli_fname;
    const std::vector<Loaded> modules{{*libc, bias, false}};
    int seen = 0;
    for (const prototypes::Prototype *each : prototypes::all()) {
        LocationRequest wanted;
        wanted.number = 1;
        wanted.kind = Kind::ret;
        wanted.bias = bias;
        for (const symbols::Symbol *symbol : (*libc)->named(each->function.name))
            if (symbol->kind == symbols::Symbol::Kind::function) wanted.location.vaddr = symbol->vaddr;
        if (wanted.location.vaddr == 0) continue; // of another library, or chosen when it runs
        seen++;
        wanted.location.module = *libc;
        wanted.location.symbol = each->function.name;
        wanted.location.function = wanted.location.vaddr;
        auto compiled = compile({wanted}, {.modules = modules});
        auto state = make_probe_state(actions, std::make_shared<program::TableMemory>());
        ASSERT_EQ(bench.run(compiled[0].program, Moment::call, *state), Outcome::accepted);
        auto nodes = run(compiled[0], Moment::ret);
        const std::size_t results = (each->function.result ? 1 : 0) + (each->sets_errno ? 1 : 0);
        ASSERT_EQ(nodes.size(), each->function.parameters.size() + results) << each->function.name;
        for (const Node &node : nodes)
            EXPECT_TRUE(node.tag != Tag::na && node.tag != Tag::unavailable) << each->function.name;
    }
    EXPECT_GT(seen, 300);
}

TEST_F(Compile, ReturnProbesKeepTheArguments) {
    call_do_work();
    auto compiled = compile({request("optimized", Kind::ret, "do_work")});
    auto state = make_probe_state(actions, std::make_shared<program::TableMemory>());
    ASSERT_EQ(bench.run(compiled[0].program, Moment::call, *state), Outcome::accepted);
    bench.registers = {};
    bench.result() = 1;
    bench.memory.put(0x3000, std::array<int, 2>{0, 0});
    auto nodes = run(compiled[0], Moment::ret);
    ASSERT_EQ(nodes.size(), 5U);
    EXPECT_EQ(integer(nodes[0]), 3);
    EXPECT_EQ(nodes[1].text(), "alice");
    EXPECT_EQ(integer(nodes[4]), 1);
}

TEST_F(Compile, ValuesToPrintStandInPlaceOfTheArguments) {
    call_do_work();
    actions.print = {"args.p->x"};
    EXPECT_EQ(integer(run(compile({request("optimized", Kind::entry, "do_work")})[0], Moment::entry).at(0)), 8);
    EXPECT_EQ(run(compile({request("optimized", Kind::entry, "do_work")})[0], Moment::entry).size(), 1U);
    actions.print.clear();
    actions.no_args = true;
    EXPECT_TRUE(run(compile({request("optimized", Kind::entry, "do_work")})[0], Moment::entry).empty());
}

TEST_F(Compile, AnExpressionThatFitsSomeIsNothingOnTheOthers) {
    call_do_work();
    actions.print = {"args.name"};
    auto compiled = compile({request("debug", Kind::probe, "do_work"), request("debug", Kind::probe, "make")});
    EXPECT_EQ(run(compiled[0], Moment::pre).at(0).text(), "alice");
    EXPECT_EQ(run(compiled[1], Moment::pre).at(0).tag, Tag::na);
    Error error = refusal({request("debug", Kind::probe, "nothing"), request("debug", Kind::probe, "make")});
    EXPECT_NE(error.message.find("nothing has no parameter `name`"), std::string::npos) << error.message;
    EXPECT_EQ(error.hint, "its parameters are d, i");
    EXPECT_EQ(error.column, 0);
    compiled = compile({request("debug", Kind::probe, "make")}, {.additional = true});
    EXPECT_EQ(run(compiled[0], Moment::pre).at(0).tag, Tag::na);
}

TEST_F(Compile, AnExpressionThatATableDoesNotShowHasToFitToo) {
    actions.aggregate = Actions::Aggregate::count;
    for (Kind kind : {Kind::probe, Kind::entry, Kind::ret}) {
        actions.print = {"args.name"};
        EXPECT_EQ(refusal({request("debug", kind, "do_work"), request("debug", kind, "make")}).message, "");
        Error error = refusal({request("debug", kind, "make")});
        EXPECT_NE(error.message.find("make has no parameter `name`"), std::string::npos) << error.message;
        EXPECT_EQ(error.column, 0);
    }
    actions.print = {"retval"};
    EXPECT_EQ(refusal({request("debug", Kind::ret, "do_work")}).message, "");
    EXPECT_NE(refusal({request("debug", Kind::probe, "do_work")}).message.find("return probe"), std::string::npos);
    actions.print.clear();
    actions.post = true;
    actions.post_print = {"var.counter", "var.nowhere"};
    EXPECT_NE(refusal({request("debug", Kind::probe, "do_work")}).message.find("nowhere"), std::string::npos);
}

TEST_F(Compile, TheOutcomeBelongsToReturnProbes) {
    actions.condition = "retval == 42";
    EXPECT_NE(refusal({request("debug", Kind::probe, "do_work")}).message.find("return probe"), std::string::npos);
    EXPECT_NE(refusal({request("debug", Kind::ret, "nothing")}).message.find("void"), std::string::npos);
    actions.condition.clear();
    actions.aggregate = Actions::Aggregate::hist;
    EXPECT_NE(refusal({request("debug", Kind::entry, "do_work")}).message.find("duration"), std::string::npos);
    EXPECT_EQ(refusal({request("debug", Kind::ret, "do_work")}).message, "");
    actions.aggregate_of = "args.p"; // a pointer's number, oddly
    EXPECT_EQ(refusal({request("debug", Kind::entry, "do_work")}).message, "");
    actions.aggregate_of = "comm";
    EXPECT_NE(refusal({request("debug", Kind::entry, "do_work")}).message.find("not a number"), std::string::npos);
}

TEST_F(Compile, SyntaxIsUsage) {
    actions.print = {"tid", "1 +"};
    EXPECT_EQ(refusal({request("debug", Kind::entry, "do_work")}).kind, Error::Kind::usage);
    auto status = check_expressions(actions);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().source, "1 +");
    EXPECT_EQ(status.error().column, 3);
}

TEST_F(Compile, AProbesOwnOptionsStandInPlaceOfTheCommands) {
    actions.print = {"args.op"};
    OwnOptions own{actions, "nothing --if args.i > 1", std::string_view("nothing").size()};
    own.actions.condition = "args.i > 1";
    LocationRequest of_command = request("debug", Kind::entry, "do_work");
    LocationRequest of_own = request("debug", Kind::entry, "nothing");
    of_own.own = &own;
    // args.op is the command's too, and fits do_work; args.i is of the other probe alone, and fits that one.
    EXPECT_EQ(compile({of_command, of_own}).size(), 2U);

    own.actions.condition = "args.op > 1";
    own.quoted = "nothing --if args.op > 1";
    const Error error = refusal({of_command, of_own});
    EXPECT_EQ(error.source, own.quoted);
    EXPECT_EQ(error.column, static_cast<int>(own.quoted.find("args.op")));
}

TEST_F(Compile, AVariableWithoutDebugInformationIsThatOfItsSymbol) {
    call_do_work();
    LocationRequest at = request("plain", Kind::entry, "do_work");
    const std::uint64_t counter = at.location.module->named("counter").at(0)->vaddr;
    bench.memory.put(counter + bias, -77);
    actions.print = {"var.counter", "counter + 1"};
    auto compiled = compile({at});
    auto nodes = run(compiled[0], Moment::entry);
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(integer(nodes[0]), -77);
    EXPECT_EQ(integer(nodes[1]), -76);
    actions.print = {"var.main"};
    EXPECT_NE(refusal({at}).message.find("no DWARF debug information"), std::string::npos);
}

TEST_F(Compile, AVariableOfAnotherModuleIsThatOfItsSymbol) {
    LocationRequest at = request("debug", Kind::entry, "do_work");
    Loaded other{workshop->open("exports"), 0x500000, false};
    bench.memory.put(other.module->named("exported_long").at(0)->vaddr + other.bias, std::int64_t{1} << 40);
    CompileOptions options;
    options.modules = {&other, 1};
    actions.print = {"var.exported_long"};
    auto compiled = compile({at}, options);
    auto nodes = run(compiled[0], Moment::entry);
    EXPECT_EQ(nodes.back().sint(), std::int64_t{1} << 40);
    actions.print = {"var.hidden_long"};
    kept = {at};
    EXPECT_FALSE(compile_all(actions, kept, options));
}

TEST_F(Compile, CountingNeedsNoDebugInformation) {
    actions.by = {"tid", "comm"};
    auto compiled = compile({request("debug", Kind::entry, "do_work"), request("debug", Kind::ret, "do_work")});
    EXPECT_EQ(compiled[0].info.types, nullptr);
    EXPECT_EQ(compiled[1].info.types, nullptr);
    EXPECT_FALSE(compiled[0].program.needs(Moment::entry).registers);
    EXPECT_FALSE(compiled[1].program.needs(Moment::call).runs);
    auto state = make_probe_state(actions, std::make_shared<program::TableMemory>());
    EXPECT_EQ(bench.run(compiled[0].program, Moment::entry, *state), Outcome::aggregated);
    auto table = state->aggregation.snapshot();
    EXPECT_EQ(table.kind, program::Table::Kind::count);
    ASSERT_EQ(table.rows.size(), 1U);
    EXPECT_EQ(table.rows[0].key.at(1).text, "worker");
}

} // namespace
} // namespace ktrace::probe
