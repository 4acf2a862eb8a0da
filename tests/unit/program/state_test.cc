// Selection and tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "program/run/node_writer.h"
#include "program/tables/state.h"

namespace ktrace::program {
namespace {

std::vector<int> selected(Selection selection, int hits) {
    Selector selector(selection);
    std::vector<int> chosen;
    for (int hit = 1; hit <= hits; ++hit)
        if (selector.next()) chosen.push_back(hit);
    return chosen;
}

TEST(Selector, EverySelectsItsMultiples) {
    EXPECT_EQ(selected({.every = 3}, 10), (std::vector{3, 6, 9}));
    EXPECT_EQ(selected({.every = 0}, 3), (std::vector{1, 2, 3}));
    EXPECT_EQ(selected({.every = 3, .first = 1}, 20), (std::vector{3})); // the third hit only
    EXPECT_EQ(selected({.first = 2}, 5), (std::vector{1, 2}));
    EXPECT_EQ(selected({.first = 0}, 5), (std::vector<int>{}));
}

TEST(Selector, ChanceIsRepeatableAndFair) {
    auto a = selected({.chance = 0.25, .seed = 7}, 40000), b = selected({.chance = 0.25, .seed = 7}, 40000);
    EXPECT_EQ(a, b);
    EXPECT_NE(a, selected({.chance = 0.25, .seed = 8}, 40000));
    EXPECT_NEAR(static_cast<double>(a.size()), 10000, 500);
    EXPECT_TRUE(selected({.chance = 0.0}, 1000).empty());
    auto first = selected({.every = 2, .chance = 0.5, .seed = 1, .first = 3}, 1000);
    EXPECT_EQ(first.size(), 3U);
    for (int hit : first) EXPECT_EQ(hit % 2, 0);
}

Number unsigned_number(std::uint64_t value) { return {Number::Kind::uint, value}; }
Number signed_number(std::int64_t value) { return {Number::Kind::sint, static_cast<std::uint64_t>(value)}; }

TEST(Distribution, PercentilesAreWithinOnePercent) {
    std::uint64_t state = 42;
    std::vector<double> values;
    Distribution distribution;
    TableMemory memory;
    for (int i = 0; i < 20000; ++i) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        auto value = static_cast<std::uint64_t>(std::exp2(static_cast<double>(state >> 40) / 0x1p24 * 50));
        values.push_back(static_cast<double>(value));
        distribution.add(unsigned_number(value), memory);
    }
    std::sort(values.begin(), values.end());
    for (double fraction : {0.01, 0.5, 0.9, 0.99, 1.0}) {
        double exact = values[static_cast<std::size_t>(std::ceil(fraction * 20000)) - 1];
        EXPECT_NEAR(distribution.percentile(fraction), exact, exact * 0.01) << fraction;
    }
}

TEST(Distribution, SmallIntegersAndNegativesAreExact) {
    Distribution distribution;
    TableMemory memory;
    for (int value = -50; value <= 49; ++value) distribution.add(signed_number(value), memory);
    EXPECT_EQ(distribution.percentile(0.01), -50);
    EXPECT_EQ(distribution.percentile(0.50), -1);
    EXPECT_EQ(distribution.percentile(0.51), 0);
    EXPECT_EQ(distribution.percentile(1.0), 49);
}

TEST(Aggregation, StatsOfOneKey) {
    Aggregation table(Table::Kind::stats, {}, "duration", std::make_shared<TableMemory>());
    for (std::uint64_t v = 1; v <= 100; ++v) {
        Number number = unsigned_number(v * 1000);
        table.add({}, 1, &number);
    }
    table.add({}, 1, nullptr);
    Table snapshot = table.snapshot();
    ASSERT_EQ(snapshot.rows.size(), 1U);
    const Row &row = snapshot.rows[0];
    EXPECT_EQ(row.count, 101U);
    EXPECT_EQ(row.unread, 1U);
    EXPECT_EQ(row.stats.count, 100U);
    EXPECT_EQ(row.stats.avg, 50500);
    EXPECT_EQ(row.stats.min.bits, 1000U);
    EXPECT_EQ(row.stats.max.bits, 100000U);
    EXPECT_NEAR(row.stats.p50.as_double(), 50000, 500);
    EXPECT_NEAR(row.stats.p90.as_double(), 90000, 900);
    EXPECT_NEAR(row.stats.p99.as_double(), 99000, 990);
}

TEST(Aggregation, PercentilesMayBeInfinite) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Aggregation table(Table::Kind::stats, {}, "retval", std::make_shared<TableMemory>());
    for (double value : {-infinity, 1.0, infinity}) {
        Number number{Number::Kind::floating, std::bit_cast<std::uint64_t>(value)};
        table.add({}, 1, &number);
    }
    const Stats stats = table.snapshot().rows.at(0).stats;
    EXPECT_EQ(stats.min.as_double(), -infinity);
    EXPECT_NEAR(stats.p50.as_double(), 1, 0.01);
    EXPECT_EQ(stats.p90.as_double(), infinity);
    EXPECT_EQ(stats.p99.as_double(), infinity);
}

TEST(Aggregation, StatsLeaveOutNaN) {
    Aggregation table(Table::Kind::stats, {}, "retval", std::make_shared<TableMemory>());
    for (double value : {1.0, std::nan("")}) {
        Number number{Number::Kind::floating, std::bit_cast<std::uint64_t>(value)};
        table.add({}, 1, &number);
    }
    const Row row = table.snapshot().rows.at(0);
    EXPECT_EQ(row.count, 2U);
    EXPECT_EQ(row.unread, 0U);
    EXPECT_EQ(row.nans, 1U);
    EXPECT_EQ(row.stats.count, 1U);
}

std::vector<std::byte> key_of(std::uint64_t value);

Duration call(std::uint64_t ns, std::uint64_t inner_ns = 0, bool is_nested = false) {
    Duration made;
    made.ns = ns;
    made.inner_ns = inner_ns;
    made.is_nested = is_nested;
    made.taken_ns = 10;
    made.errors = {30, 20, 150, 400};
    return made;
}

void add_calls(Aggregation &table, std::initializer_list<Duration> calls) {
    for (const Duration &each : calls) {
        Number number = unsigned_number(each.ns);
        table.add({}, 1, &number, &each);
    }
}

TEST(Aggregation, NestedCallsAreInTheTotalOnce) {
    Aggregation table(Table::Kind::stats, {}, "duration", std::make_shared<TableMemory>());
    add_calls(table, {call(300, 0, true), call(400, 300, true), call(1000, 400)});
    const Stats stats = table.snapshot().rows.at(0).stats;
    EXPECT_EQ(stats.count, 3U);
    EXPECT_EQ(stats.total, 1000);
    EXPECT_EQ(stats.self, 1000);
    EXPECT_EQ(stats.avg, 1700.0 / 3);
    EXPECT_EQ(stats.taken, 30);
    EXPECT_EQ(stats.taken_of_totals, 10);
    EXPECT_EQ(stats.errors.p99, 400);
}

TEST(Aggregation, ErrorsAreNotKnownWhereOneIsNot) {
    Aggregation table(Table::Kind::stats, {}, "duration", std::make_shared<TableMemory>());
    Duration unknown = call(500);
    unknown.errors = {};
    add_calls(table, {call(500), unknown});
    EXPECT_EQ(table.snapshot().rows.at(0).stats.errors.avg, 0);
}

TEST(Aggregation, TheLeastAndTheGreatestHaveErrorsOfTheirOwn) {
    Aggregation table(Table::Kind::stats, {}, "duration", std::make_shared<TableMemory>());
    Duration rough = call(0);
    rough.errors = {1000, 1000, 2000, 5000};
    add_calls(table, {call(300), rough, call(500), call(400)});
    const Stats stats = table.snapshot().rows.at(0).stats;
    EXPECT_EQ(stats.min_error, rough.errors.p50);
    EXPECT_EQ(stats.max_error, call(500).errors.p99);
}

TEST(Aggregation, HistogramsOfDurationsAreByUnits) {
    Aggregation table(Table::Kind::hist, {}, "duration", std::make_shared<TableMemory>());
    add_calls(table, {call(0), call(199), call(200), call(999), call(1000), call(600'000), call(1'000'000),
                      call(3'000'000'000'000)});
    const Row row = table.snapshot().rows.at(0);
    EXPECT_EQ(row.hist, (std::vector<Bucket>{{0, 199, 2},
                                             {128, 255, 1},
                                             {512, 999, 1},
                                             {1000, 1999, 1},
                                             {512'000, 999'999, 1},
                                             {1'000'000, 1'999'999, 1},
                                             {2'048'000'000'000, 4'095'999'999'999, 1}}));
}

TEST(Aggregation, RangesBelowTheLargestErrorAreFolded) {
    Aggregation table(Table::Kind::hist, {}, "duration", std::make_shared<TableMemory>());
    Duration rough = call(300);
    rough.errors.p90 = 2000;
    add_calls(table, {call(300), call(3000), rough});
    const Row row = table.snapshot().rows.at(0);
    EXPECT_EQ(row.hist, (std::vector<Bucket>{{0, 1999, 2}, {2000, 3999, 1}}));
}

TEST(Aggregation, RangesStayWhereFewerValuesAreBelowTheLargestError) {
    Aggregation table(Table::Kind::hist, {}, "duration", std::make_shared<TableMemory>());
    Duration rough = call(300);
    rough.errors.p90 = 2000;
    for (int i = 0; i < 200; i++) add_calls(table, {call(300)});
    for (int i = 0; i < 20; i++) add_calls(table, {rough});
    const Row row = table.snapshot().rows.at(0);
    EXPECT_EQ(row.hist, (std::vector<Bucket>{{0, 1999, 20}, {256, 511, 200}}));
}

TEST(Aggregation, AddsUp) {
    auto memory = std::make_shared<TableMemory>();
    Aggregation table(Table::Kind::stats, {}, "duration", memory), other = table.empty_copy(), all = table.empty_copy();
    add_calls(table, {call(100), call(300)});
    add_calls(other, {call(200), call(400, 100)});
    all.add_all(table);
    all.add_all(other);
    const Row row = all.snapshot().rows.at(0);
    EXPECT_EQ(row.count, 4U);
    EXPECT_EQ(row.stats.min.bits, 100U);
    EXPECT_EQ(row.stats.max.bits, 400U);
    EXPECT_EQ(row.stats.total, 1000);
    EXPECT_EQ(row.stats.self, 900);
    EXPECT_NEAR(row.stats.p50.as_double(), 200, 2);
}

TEST(Aggregation, KeysOfOneNameAreOne) {
    Aggregation table(Table::Kind::stats, {"caller"}, "n", std::make_shared<TableMemory>()), all = table.empty_copy();
    for (std::uint64_t site : {0x11, 0x12, 0x21}) {
        Number number = unsigned_number(site);
        table.add(key_of(site), 1, &number);
    }
    all.add_named(table, [](const auto &key, std::int32_t) { return std::to_string(key.at(0).number >> 4); });
    const Table named = all.snapshot();
    ASSERT_EQ(named.rows.size(), 2U);
    const Row &row = named.rows[named.rows[0].count == 2 ? 0 : 1];
    EXPECT_EQ(row.count, 2U);
    EXPECT_EQ(row.stats.total, 0x23);
    EXPECT_EQ(row.stats.max.bits, 0x12U);
}

TEST(Aggregation, RecentHitsAreApart) {
    Aggregation table(Table::Kind::count, {}, "", std::make_shared<TableMemory>());
    table.keep_recent();
    table.add({}, 1, nullptr);
    table.add_hits(2, 1);
    EXPECT_EQ(table.recent_hits().snapshot().rows.at(0).count, 3U);
    table.clear_recent();
    EXPECT_TRUE(table.recent_hits().snapshot().rows.empty());
    table.add({}, 1, nullptr);
    EXPECT_EQ(table.recent_hits().snapshot().rows.at(0).count, 1U);
    EXPECT_EQ(table.snapshot().rows.at(0).count, 4U);
}

TEST(Aggregation, HistogramsByPowersOfTwo) {
    Aggregation table(Table::Kind::hist, {}, "n", std::make_shared<TableMemory>());
    for (std::int64_t v : {-5, -1, 0, 1, 2, 3, 4, 7, 8}) {
        Number number = signed_number(v);
        table.add({}, 1, &number);
    }
    auto hist = table.snapshot().rows.at(0).hist;
    std::vector<std::array<std::int64_t, 3>> seen;
    for (const Bucket &b : hist) seen.push_back({b.low, b.high, static_cast<std::int64_t>(b.count)});
    EXPECT_EQ(seen, (std::vector<std::array<std::int64_t, 3>>{
                        {-7, -4, 1}, {-1, -1, 1}, {0, 0, 1}, {1, 1, 1}, {2, 3, 2}, {4, 7, 2}, {8, 15, 1}}));
}

TEST(Aggregation, HistogramsHoldTheExtremes) {
    Aggregation table(Table::Kind::hist, {}, "n", std::make_shared<TableMemory>());
    std::vector<Number> numbers = {signed_number(INT64_MIN),
                                   signed_number(INT64_MAX),
                                   unsigned_number(UINT64_MAX),
                                   {Number::Kind::floating, std::bit_cast<std::uint64_t>(1e300)},
                                   {Number::Kind::floating, std::bit_cast<std::uint64_t>(-0.5)},
                                   {Number::Kind::floating, std::bit_cast<std::uint64_t>(std::nan(""))}};
    for (const Number &number : numbers) table.add({}, 1, &number);
    const Row row = table.snapshot().rows.at(0);
    EXPECT_EQ(row.unread, 0U);
    EXPECT_EQ(row.nans, 1U);
    std::uint64_t sum = 0;
    for (const Bucket &b : row.hist) sum += b.count;
    EXPECT_EQ(sum, 5U);
    EXPECT_EQ(row.hist.front().low, INT64_MIN);
    EXPECT_EQ(row.hist.back().high, INT64_MAX);
}

std::vector<std::byte> key_of(std::uint64_t value) {
    std::vector<std::byte> bytes(64);
    NodeWriter writer(bytes, 1024, true);
    writer.number(Tag::uint, value);
    bytes.resize(writer.size());
    return bytes;
}

TEST(Aggregation, KeysAreBounded) {
    Aggregation table(Table::Kind::count, {"arg0"}, "", std::make_shared<TableMemory>());
    for (std::uint64_t key = 0; key < Aggregation::max_rows + 5; ++key) table.add(key_of(key), 1, nullptr);
    table.add(key_of(3), 1, nullptr);
    table.add(key_of(Aggregation::max_rows + 1), 1, nullptr);
    Table snapshot = table.snapshot();
    ASSERT_EQ(snapshot.rows.size(), Aggregation::max_rows + 1);
    EXPECT_TRUE(snapshot.rows.back().other);
    EXPECT_EQ(snapshot.rows.back().count, 6U);
    for (const Row &row : snapshot.rows) EXPECT_TRUE(row.other || row.count == (row.key.at(0).number == 3 ? 2U : 1U));
}

TEST(Aggregation, KnowsWhoseKeysItHas) {
    Aggregation table(Table::Kind::count, {"arg0"}, "", std::make_shared<TableMemory>());
    table.add(key_of(0), 1, nullptr);
    table.add(key_of(0), 2, nullptr);
    for (std::uint64_t key = 1; key < Aggregation::max_rows; ++key) table.add(key_of(key), 3, nullptr);
    table.add(key_of(Aggregation::max_rows), 4, nullptr);
    EXPECT_TRUE(table.has_rows_of(1));
    EXPECT_FALSE(table.has_rows_of(2)); // the key was there
    EXPECT_TRUE(table.has_rows_of(3));
    EXPECT_FALSE(table.has_rows_of(4)); // in the row of the others
}

TEST(Aggregation, TablesShareTheirMemory) {
    constexpr std::uint64_t keys = 1000;
    auto memory = std::make_shared<TableMemory>(64 * 1024);
    Aggregation one(Table::Kind::count, {"arg0"}, "", memory), other = one.empty_copy();
    for (std::uint64_t key = 0; key < keys; ++key) one.add(key_of(key), 1, nullptr);
    for (std::uint64_t key = 0; key < keys; ++key) one.add(key_of(key), 1, nullptr);
    other.add(key_of(0), 1, nullptr);
    const Table rows = one.snapshot(), none = other.snapshot();
    EXPECT_LT(rows.rows.size(), keys);
    EXPECT_GT(rows.rows.size(), 100U);
    EXPECT_TRUE(rows.rows.back().other);
    std::uint64_t hits = 0;
    for (const Row &row : rows.rows) {
        hits += row.count;
        EXPECT_TRUE(row.other || row.count == 2);
    }
    EXPECT_EQ(hits, 2 * keys);
    ASSERT_EQ(none.rows.size(), 1U);
    EXPECT_TRUE(none.rows[0].other);
}

TEST(Aggregation, ValuesWithoutMemoryHaveNoPercentile) {
    auto memory = std::make_shared<TableMemory>(2048);
    Aggregation table(Table::Kind::stats, {}, "n", memory);
    for (int exponent = 0; exponent < 60; ++exponent) {
        Number number = unsigned_number(std::uint64_t{1} << exponent);
        table.add({}, 1, &number);
        const Stats stats = table.snapshot().rows.at(0).stats;
        EXPECT_EQ(stats.has_percentiles, exponent < 3);
    }
    const Stats stats = table.snapshot().rows.at(0).stats;
    EXPECT_EQ(stats.count, 60U);
    EXPECT_EQ(stats.min.bits, 1U);
    EXPECT_EQ(stats.max.bits, std::uint64_t{1} << 59);
    EXPECT_EQ(stats.avg, static_cast<double>((std::uint64_t{1} << 60) - 1) / 60);
}

} // namespace
} // namespace ktrace::program
