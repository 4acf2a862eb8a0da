#include "program/tables/aggregate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "program/tables/record_reader.h"

namespace ktrace::program {

double Number::as_double() const {
    switch (kind) {
    case Kind::sint: return static_cast<double>(static_cast<std::int64_t>(bits));
    case Kind::uint: return static_cast<double>(bits);
    case Kind::floating: break;
    }
    return std::bit_cast<double>(bits);
}

namespace {

bool less(const Number &a, const Number &b) {
    if (a.kind == b.kind && a.kind == Number::Kind::sint)
        return static_cast<std::int64_t>(a.bits) < static_cast<std::int64_t>(b.bits);
    if (a.kind == b.kind && a.kind == Number::Kind::uint) return a.bits < b.bits;
    return a.as_double() < b.as_double();
}

} // namespace

bool TableMemory::take(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
}

// A double's upper bits are its sign, exponent and leading digits: as a bucket's number they grow with the value and
// split every power of two in 64. A negative value's octave is the mirrored one.
void Distribution::add(Number number, TableMemory &memory) {
    ++count_;
    auto bits = std::bit_cast<std::uint64_t>(number.as_double());
    auto exponent = static_cast<std::int32_t>(bits >> 52 & 0x7ff);
    std::size_t digit = bits >> 46 & 63;
    bool negative = bits >> 63;
    std::int32_t octave = negative ? -1 - exponent : exponent;
    auto at = std::lower_bound(octaves_.begin(), octaves_.end(), octave,
                               [](const auto &entry, std::int32_t wanted) { return entry.first < wanted; });
    if (at == octaves_.end() || at->first != octave) {
        if (!memory.take(sizeof(Octave) + 2 * sizeof *at)) { // the vector grows by doubling
            complete_ = false;
            return;
        }
        at = octaves_.emplace(at, octave, std::make_unique<Octave>());
    }
    ++(*at->second)[negative ? 63 - digit : digit];
}

namespace {

/// The middle of a bucket of Distribution. Integers of up to 2^7 have a bucket each, and are their bucket's lower end;
/// so has infinity.
double bucket_middle(std::int32_t octave, std::size_t digit) {
    bool negative = octave < 0;
    auto exponent = static_cast<std::uint64_t>(negative ? -1 - octave : octave);
    std::uint64_t bits = exponent << 52 | std::uint64_t{negative ? 63 - digit : digit} << 46;
    auto low = std::bit_cast<double>(bits), width = std::bit_cast<double>(bits + (std::uint64_t{1} << 46)) - low;
    double middle = std::isinf(low) || (width <= 1 && std::floor(low) == low) ? low : low + width / 2;
    return negative ? -middle : middle;
}

} // namespace

double Distribution::percentile(double fraction) const {
    auto wanted = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
    wanted = std::max<std::uint64_t>(wanted, 1);
    std::uint64_t seen = 0;
    for (const auto &[octave, digits] : octaves_)
        for (std::size_t digit = 0; digit < digits->size(); ++digit)
            if (seen += (*digits)[digit]; seen >= wanted) return bucket_middle(octave, digit);
    return 0;
}

/// One row while it grows.
struct Aggregation::Cell {
    std::vector<KeyPart> key;
    std::int32_t pid = 0;
    std::uint64_t count = 0, unread = 0, nans = 0;
    double sum = 0;
    Number min, max;
    Distribution distribution;
    // hist: by magnitude. [0]: zero; [n]: 2^(n-1) … 2^n - 1; of negative values the absolute value. nullptr: there is
    // none yet (a table may have many rows).
    using Magnitudes = std::array<std::uint64_t, 65>;
    std::unique_ptr<Magnitudes> positive, negative;

    void add_stats(Number number, TableMemory &memory);
    void add_hist(Number number);
    Stats stats() const;
    std::vector<Bucket> hist() const;
};

Aggregation::Aggregation(Table::Kind kind, std::vector<std::string> by, std::string of,
                         std::shared_ptr<TableMemory> memory)
    : kind_(kind), by_(std::move(by)), of_(std::move(of)), memory_(std::move(memory)) {}
Aggregation::~Aggregation() = default;

void Aggregation::Cell::add_stats(Number number, TableMemory &memory) {
    if (number.kind == Number::Kind::floating && std::isnan(number.as_double())) {
        ++nans;
        return;
    }
    if (distribution.count() == 0 || less(number, min)) min = number;
    if (distribution.count() == 0 || less(max, number)) max = number;
    sum += number.as_double();
    distribution.add(number, memory);
}

void Aggregation::Cell::add_hist(Number number) {
    if (number.kind == Number::Kind::floating) {
        double value = std::floor(number.as_double());
        if (std::isnan(value)) {
            ++nans;
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

Stats Aggregation::Cell::stats() const {
    Stats stats;
    stats.count = distribution.count();
    if (stats.count == 0) return stats;
    stats.avg = sum / static_cast<double>(stats.count);
    stats.min = min;
    stats.max = max;
    stats.has_percentiles = distribution.is_complete();
    if (!stats.has_percentiles) return stats;
    stats.p50 = percentile(distribution, 0.50, min, max);
    stats.p90 = percentile(distribution, 0.90, min, max);
    stats.p99 = percentile(distribution, 0.99, min, max);
    return stats;
}

std::vector<Bucket> Aggregation::Cell::hist() const {
    std::vector<Bucket> all;
    auto values_of = [](const auto &magnitudes, int width) {
        return magnitudes ? (*magnitudes)[static_cast<std::size_t>(width)] : 0;
    };
    for (int width = 64; width > 0; --width)
        all.push_back({width == 64 ? INT64_MIN : -bucket_high(width), width == 64 ? INT64_MIN : -bucket_low(width),
                       values_of(negative, width)});
    for (int width = 0; width <= 64; ++width)
        all.push_back({bucket_low(width), bucket_high(width), values_of(positive, width)});
    auto filled = [](const Bucket &bucket) { return bucket.count != 0; };
    auto first = std::find_if(all.begin(), all.end(), filled);
    auto last = std::find_if(all.rbegin(), all.rend(), filled).base();
    if (first >= last) return {};
    return {first, last};
}

namespace {

KeyPart key_part(const Node &node) {
    KeyPart part;
    part.tag = node.tag;
    part.number = node.number;
    part.floating = node.floating;
    part.type = node.type;
    if (node.tag == Tag::buffer) part.tag = Tag::string;
    if (part.tag == Tag::string || part.tag == Tag::raw) {
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

void Aggregation::add(std::span<const std::byte> key, std::int32_t pid, const Number *number) {
    Cell &row = cell(key, pid);
    ++row.count;
    if (kind_ == Table::Kind::count) return;
    if (!number)
        ++row.unread;
    else if (kind_ == Table::Kind::stats)
        row.add_stats(*number, *memory_);
    else
        row.add_hist(*number);
}

void Aggregation::add_hits(std::uint64_t count, std::int32_t pid) { cell({}, pid).count += count; }

Table Aggregation::snapshot() const {
    Table table;
    table.kind = kind_;
    table.by = by_;
    table.of = of_;
    auto row_of = [&](const Cell &cell) {
        Row row{cell.key, false, cell.pid, cell.count, cell.unread, cell.nans, {}, {}};
        if (kind_ == Table::Kind::stats) row.stats = cell.stats();
        if (kind_ == Table::Kind::hist) row.hist = cell.hist();
        return row;
    };
    for (const auto &[bytes, cell] : cells_) table.rows.push_back(row_of(*cell));
    auto weight = [&](const Row &row) {
        return kind_ == Table::Kind::stats ? row.stats.avg * static_cast<double>(row.stats.count)
                                           : static_cast<double>(row.count);
    };
    auto order = [](const Row &row) {
        std::string text;
        for (const KeyPart &part : row.key) text += part.text + '\0' + std::to_string(part.number) + '\0';
        return text;
    };
    std::sort(table.rows.begin(), table.rows.end(), [&](const Row &a, const Row &b) {
        double wa = weight(a), wb = weight(b);
        return wa != wb ? wa < wb : order(a) < order(b);
    });
    if (other_) {
        table.rows.push_back(row_of(*other_));
        table.rows.back().other = true;
    }
    return table;
}

} // namespace ktrace::program
