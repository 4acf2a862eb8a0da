#include "program/tables/aggregate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "program/run/buckets.h"
#include "program/tables/record_reader.h"

namespace ktrace::program {

namespace {

bool less(const Number &a, const Number &b) {
    if (a.kind == b.kind && a.kind == Number::Kind::sint)
        return static_cast<std::int64_t>(a.bits) < static_cast<std::int64_t>(b.bits);
    if (a.kind == b.kind && a.kind == Number::Kind::uint) return a.bits < b.bits;
    return a.as_double() < b.as_double();
}

} // namespace

/// One row while it grows.
struct Aggregation::Cell {
    std::vector<KeyPart> key;
    std::int32_t pid = 0;

    struct Sums {
        std::uint64_t count = 0, unread = 0, nans = 0;
        std::map<std::uint64_t, std::uint64_t> below; // hist: durations below their errors, by these
        double sum = 0, total = 0, self = 0, taken = 0, taken_of_totals = 0;
        TimeErrors errors;
        bool has_errors = true;
    } sums;
    Number min, max;
    double min_error = 0, max_error = 0; // of durations, ns
    Distribution distribution;
    // hist: by magnitude. [0]: zero; [n]: 2^(n-1) … 2^n - 1; of negative values the absolute value; of durations by
    // time_bucket. nullptr: there is none yet (a table may have many rows).
    using Magnitudes = std::array<std::uint64_t, 65>;
    std::unique_ptr<Magnitudes> positive, negative;

    void note_least(Number number, double error);
    void note_greatest(Number number, double error);
    void add_stats(Number number, const Duration *duration, TableMemory &memory);
    void add_hist(Number number);
    void add_time(const Duration &duration);
    void add_gathered(const Gathered &hits, bool is_stats, bool is_of_durations, TableMemory &memory);
    void add_all(const Cell &other, TableMemory &memory);
    void clear();
    Stats stats(std::span<const double> also) const;
    std::vector<Bucket> hist(bool is_of_durations) const;
};

Aggregation::Aggregation(Table::Kind kind, std::vector<std::string> by, std::string of,
                         std::shared_ptr<TableMemory> memory)
    : kind_(kind), by_(std::move(by)), of_(std::move(of)), memory_(std::move(memory)) {}
Aggregation::~Aggregation() = default;

/// A value of some that are not in the distribution yet.
void Aggregation::Cell::note_least(Number number, double error) {
    if (distribution.count() != 0 && !less(number, min)) return;
    min = number;
    min_error = error;
}

void Aggregation::Cell::note_greatest(Number number, double error) {
    if (distribution.count() != 0 && !less(max, number)) return;
    max = number;
    max_error = error;
}

void Aggregation::Cell::add_stats(Number number, const Duration *duration, TableMemory &memory) {
    if (number.kind == Number::Kind::floating && std::isnan(number.as_double())) {
        ++sums.nans;
        return;
    }
    note_least(number, duration ? duration->errors.p50 : 0);
    note_greatest(number, duration ? duration->errors.p99 : 0);
    distribution.add(number, memory);
    sums.sum += number.as_double();
    if (!duration) {
        sums.total += number.as_double();
        sums.has_errors = false;
        return;
    }
    sums.self += static_cast<double>(duration->ns - duration->inner_ns);
    sums.taken += static_cast<double>(duration->taken_ns);
    if (!duration->is_nested) {
        sums.total += static_cast<double>(duration->ns);
        sums.taken_of_totals += static_cast<double>(duration->taken_ns);
    }
    sums.errors += duration->errors;
    sums.has_errors = sums.has_errors && duration->error_ns() != 0;
}

void Aggregation::Cell::add_hist(Number number) {
    if (number.kind == Number::Kind::floating) {
        double value = std::floor(number.as_double());
        if (std::isnan(value)) {
            ++sums.nans;
            return;
        }
        value = std::clamp(value, -0x1p63, 0x1.fffffffffffffp62);
        number = {Number::Kind::sint, static_cast<std::uint64_t>(static_cast<std::int64_t>(value))};
    }
    bool below = number.kind == Number::Kind::sint && static_cast<std::int64_t>(number.bits) < 0;
    std::uint64_t magnitude = below ? 0 - number.bits : number.bits;
    auto &magnitudes = below ? negative : positive;
    if (!magnitudes) magnitudes = std::make_unique<Magnitudes>();
    ++(*magnitudes)[static_cast<std::size_t>(std::bit_width(magnitude))];
}

namespace {

std::int64_t high_of_time_bucket(std::size_t number) {
    return number == last_time_bucket ? INT64_MAX : static_cast<std::int64_t>(low_of_time_bucket(number + 1)) - 1;
}

} // namespace

void Aggregation::Cell::add_time(const Duration &duration) {
    if (const std::uint64_t error = std::max<std::uint64_t>(1, duration.error_ns()); duration.ns < error) {
        ++sums.below[error];
        return;
    }
    if (!positive) positive = std::make_unique<Magnitudes>();
    ++(*positive)[time_bucket(duration.ns)];
}

void Aggregation::Cell::add_gathered(const Gathered &hits, bool is_stats, bool is_of_durations, TableMemory &memory) {
    sums.unread += hits.unread;
    if (hits.below != 0) sums.below[std::max<std::uint64_t>(1, hits.error_ns)] += hits.below;
    if (!is_stats) {
        if (!positive) positive = std::make_unique<Magnitudes>();
        for (const auto &[bucket, count] : hits.buckets) (*positive)[bucket] += count;
        return;
    }
    std::uint64_t values = 0;
    for (const auto &[low, count] : hits.values) values += count;
    if (values != 0) {
        const TimeErrors errors = hits.errors / static_cast<double>(values);
        note_least(hits.min, errors.p50);
        note_greatest(hits.max, errors.p99);
    }
    for (const auto &[low, count] : hits.values) distribution.add({hits.min.kind, low}, memory, count);
    sums.sum += hits.sum;
    sums.total += hits.total;
    sums.self += hits.self;
    sums.taken += hits.taken;
    sums.taken_of_totals += hits.taken_of_totals;
    sums.errors += hits.errors;
    sums.has_errors = sums.has_errors && is_of_durations && hits.error_ns != 0;
}

void Aggregation::Cell::add_all(const Cell &other, TableMemory &memory) {
    if (other.distribution.count() != 0) {
        note_least(other.min, other.min_error);
        note_greatest(other.max, other.max_error);
    }
    distribution.add_all(other.distribution, memory);
    sums.count += other.sums.count;
    sums.unread += other.sums.unread;
    sums.nans += other.sums.nans;
    for (const auto &[error, count] : other.sums.below) sums.below[error] += count;
    sums.sum += other.sums.sum;
    sums.total += other.sums.total;
    sums.self += other.sums.self;
    sums.taken += other.sums.taken;
    sums.taken_of_totals += other.sums.taken_of_totals;
    sums.errors += other.sums.errors;
    sums.has_errors = sums.has_errors && other.sums.has_errors;
    for (auto part : {&Cell::positive, &Cell::negative}) {
        if (!(other.*part)) continue;
        if (!(this->*part)) this->*part = std::make_unique<Magnitudes>();
        for (std::size_t i = 0; i < (this->*part)->size(); ++i) (*(this->*part))[i] += (*(other.*part))[i];
    }
}

void Aggregation::Cell::clear() {
    sums = {};
    distribution.clear();
    if (positive) positive->fill(0);
    if (negative) negative->fill(0);
}

namespace {

/// A percentile in the kind of the values themselves, never outside of what was seen.
Number percentile(const Distribution &distribution, double fraction, const Number &min, const Number &max) {
    double value = distribution.percentile(fraction);
    if (value <= min.as_double()) return min;
    if (value >= max.as_double()) return max;
    switch (min.kind) {
    case Number::Kind::floating: return {min.kind, std::bit_cast<std::uint64_t>(value)};
    case Number::Kind::uint: return {min.kind, static_cast<std::uint64_t>(value)};
    case Number::Kind::sint: break;
    }
    return {min.kind, static_cast<std::uint64_t>(static_cast<std::int64_t>(value))};
}

std::int64_t bucket_high(int width) {
    return width == 0 ? 0 : width >= 64 ? INT64_MAX : static_cast<std::int64_t>((std::uint64_t{1} << width) - 1);
}
std::int64_t bucket_low(int width) {
    return width == 0 ? 0 : width >= 64 ? INT64_MAX : static_cast<std::int64_t>(std::uint64_t{1} << (width - 1));
}

} // namespace

Stats Aggregation::Cell::stats(std::span<const double> also) const {
    Stats stats;
    stats.count = distribution.count();
    if (stats.count == 0) return stats;
    stats.total = sums.total;
    stats.avg = sums.sum / static_cast<double>(stats.count);
    stats.min = min;
    stats.max = max;
    stats.min_error = min_error;
    stats.max_error = max_error;
    stats.self = sums.self;
    stats.taken = sums.taken;
    stats.taken_of_totals = sums.taken_of_totals;
    if (sums.has_errors) stats.errors = sums.errors / static_cast<double>(stats.count);
    stats.has_percentiles = distribution.is_complete();
    if (!stats.has_percentiles) return stats;
    stats.p50 = percentile(distribution, 0.50, min, max);
    stats.p90 = percentile(distribution, 0.90, min, max);
    stats.p99 = percentile(distribution, 0.99, min, max);
    for (double fraction : also) stats.also.push_back(percentile(distribution, fraction, min, max));
    return stats;
}

namespace {

/// Durations below an error are known no better than others that are: a range from 0 takes in all that are within it,
/// where it has as many as they are. Fewer, as of calls before their probe became a jump, are a row of their own.
void fold_below(std::vector<Bucket> &all) {
    const auto within = [&](const Bucket &wide) {
        std::uint64_t count = 0;
        for (const Bucket &each : all) count += each.high < wide.high ? each.count : 0;
        return count;
    };
    const auto is_wide = [&](const Bucket &each) { return each.low == 0 && each.count >= within(each); };
    const auto widest = std::find_if(all.rbegin(), all.rend(), is_wide);
    if (widest == all.rend()) return;
    Bucket &wide = *widest;
    for (Bucket &each : all) {
        if (&each == &wide || each.high >= wide.high) continue;
        wide.count += each.count;
        each.count = 0;
    }
    std::erase_if(all, [](const Bucket &each) { return each.count == 0; });
}

} // namespace

std::vector<Bucket> Aggregation::Cell::hist(bool is_of_durations) const {
    std::vector<Bucket> all;
    auto add = [&all](std::int64_t low, std::int64_t high, std::uint64_t count) {
        if (count != 0) all.push_back({low, high, count});
    };
    auto values_of = [](const auto &magnitudes, int width) {
        return magnitudes ? (*magnitudes)[static_cast<std::size_t>(width)] : 0;
    };
    for (int width = 64; width > 0; --width)
        add(width == 64 ? INT64_MIN : -bucket_high(width), width == 64 ? INT64_MIN : -bucket_low(width),
            values_of(negative, width));
    if (is_of_durations) {
        for (const auto &[error, count] : sums.below) add(0, static_cast<std::int64_t>(error) - 1, count);
        for (std::size_t n = 1; positive && n < positive->size(); ++n)
            add(static_cast<std::int64_t>(low_of_time_bucket(n)), high_of_time_bucket(n), (*positive)[n]);
        fold_below(all);
        return all;
    }
    for (int width = 0; width <= 64; ++width) add(bucket_low(width), bucket_high(width), values_of(positive, width));
    return all;
}

namespace {

KeyPart key_part(const Node &node) {
    KeyPart part;
    part.tag = node.tag;
    part.number = node.number;
    part.floating = node.floating;
    part.type = node.type;
    if (node.tag == Tag::buffer) part.tag = Tag::string;
    if (part.tag == Tag::string || part.tag == Tag::raw || part.tag == Tag::group) {
        part.text = node.text();
    } else if (node.tag == Tag::stack) {
        for (std::size_t i = 0; i < node.frames(); ++i) part.stack.push_back(node.frame(i));
    }
    return part;
}

} // namespace

/// Takes the memory of a row with this key. The only row of a table without --by is had at once: there are as many of
/// these as there are places.
bool Aggregation::has_room_for(std::span<const std::byte> key) {
    if (key.empty()) return true;
    if (cells_.size() >= max_rows) return false;
    // As bytes, and as parts, which are at least a number long (record.h).
    const std::size_t parts = 2 * sizeof(KeyPart) * by_.size() + key.size();
    const std::size_t magnitudes = kind_ == Table::Kind::hist ? 2 * sizeof(Cell::Magnitudes) : 0;
    constexpr std::size_t node = 12 * sizeof(void *); // of cells_ and pids_, and buckets of theirs
    return memory_->take(sizeof(Cell) + magnitudes + node + key.size() + parts);
}

Aggregation::Cell &Aggregation::cell(std::span<const std::byte> key, std::int32_t pid) {
    if (key.empty() && whole_) return *whole_;
    std::string_view bytes(reinterpret_cast<const char *>(key.data()), key.size());
    if (auto at = cells_.find(bytes); at != cells_.end()) return *at->second;
    if (!has_room_for(key)) {
        if (!other_) other_ = std::make_unique<Cell>();
        return *other_;
    }
    auto cell = std::make_unique<Cell>();
    cell->pid = pid;
    RecordReader reader(key);
    while (auto node = reader.next()) cell->key.push_back(key_part(*node));
    if (key.empty())
        whole_ = cell.get();
    else
        pids_.insert(pid);
    return *cells_.emplace(std::string(bytes), std::move(cell)).first->second;
}

void Aggregation::add(std::span<const std::byte> key, std::int32_t pid, const Number *number,
                      const Duration *duration) {
    if (recent_) recent_->add(key, pid, number, duration);
    Cell &row = cell(key, pid);
    ++row.sums.count;
    if (kind_ == Table::Kind::count) return;
    if (of_ != duration_text) duration = nullptr;
    if (!number)
        ++row.sums.unread;
    else if (kind_ == Table::Kind::stats)
        row.add_stats(*number, duration, *memory_);
    else if (duration)
        row.add_time(*duration);
    else
        row.add_hist(*number);
}

void Aggregation::add_hits(std::int64_t count, std::int32_t pid) {
    if (recent_ && count > 0) recent_->add_hits(count, pid);
    cell({}, pid).sums.count += static_cast<std::uint64_t>(count);
}

void Aggregation::add_gathered(const Gathered &hits, std::int32_t pid) {
    if (recent_) recent_->add_gathered(hits, pid);
    Cell &row = cell({}, pid);
    row.sums.count += hits.count;
    if (kind_ != Table::Kind::count)
        row.add_gathered(hits, kind_ == Table::Kind::stats, of_ == duration_text, *memory_);
}

void Aggregation::add_all(const Aggregation &other) {
    for (const auto &[bytes, each] : other.cells_)
        cell(std::as_bytes(std::span(bytes)), each->pid).add_all(*each, *memory_);
    if (!other.other_) return;
    if (!other_) other_ = std::make_unique<Cell>();
    other_->add_all(*other.other_, *memory_);
}

void Aggregation::add_named(const Aggregation &other, const Name &name) {
    for (const auto &[bytes, each] : other.cells_) {
        auto &known = cells_[name(each->key, each->pid)];
        if (!known) {
            known = std::make_unique<Cell>();
            known->key = each->key;
            known->pid = each->pid;
        }
        known->add_all(*each, *memory_);
    }
    if (!other.other_) return;
    if (!other_) other_ = std::make_unique<Cell>();
    other_->add_all(*other.other_, *memory_);
}

void Aggregation::keep_recent() { recent_.reset(new Aggregation(kind_, by_, of_, memory_)); }

void Aggregation::clear_recent() {
    if (recent_) recent_->clear();
}

/// Forgets its hits, and keeps its rows' memory for those to come.
void Aggregation::clear() {
    for (auto &[bytes, each] : cells_) each->clear();
    if (other_) other_->clear();
}

Table Aggregation::snapshot(std::span<const double> also) const {
    Table table;
    table.kind = kind_;
    table.by = by_;
    table.of = of_;
    auto add = [&](const Cell &cell, bool is_other) {
        if (cell.sums.count == 0) return;
        Row row;
        row.key = cell.key;
        row.other = is_other;
        row.pid = cell.pid;
        row.count = cell.sums.count;
        row.unread = cell.sums.unread;
        row.nans = cell.sums.nans;
        if (kind_ == Table::Kind::stats) row.stats = cell.stats(also);
        if (kind_ == Table::Kind::hist) row.hist = cell.hist(table.is_of_durations());
        table.rows.push_back(std::move(row));
    };
    for (const auto &[bytes, cell] : cells_) add(*cell, false);
    if (other_) add(*other_, true);
    return table;
}

} // namespace ktrace::program
