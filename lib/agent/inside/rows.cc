#include "agent/inside/rows.h"

#include "program/run/buckets.h"

namespace ktrace::agent {

namespace {

/// Greater numbers are for records: sums of these do not overflow between two looks.
constexpr std::uint64_t greatest = std::uint64_t{1} << 40;

/// The last hit's addition goes into its row. It may be there already: it is the same once more.
void put_into_row(const Addition &last) {
    if (last.row == 0) return;
    Row &row = *reinterpret_cast<Row *>(last.row);
    cells_of(row)[last.cell] = last.count;
    if (row.kind == Row::Kind::stats) row.sums = last.sums;
}

/// Begins this hit's addition: one more in a cell. Gives it, with the row's sums where it has some.
Addition &add_to(Thread &thread, Row &row, std::size_t cell, Left &left) {
    put_into_row(thread.addition[left.addition]);
    left.addition ^= 1;
    Addition &now = thread.addition[left.addition];
    now.row = reinterpret_cast<std::uint64_t>(&row);
    now.cell = static_cast<std::uint32_t>(cell);
    now.count = cells_of(row)[cell] + 1;
    if (row.kind == Row::Kind::stats) now.sums = row.sums;
    return now;
}

constexpr std::size_t no_cell = ~std::size_t{0};

std::size_t fine_cell(const Row &row, std::uint64_t value) {
    if (value == 0) return low_cell;
    const program::FineBucket bucket = program::fine_bucket(value);
    const std::uint64_t octave = bucket.octave - row.lowest;
    return octave < octaves ? first_cell + octave * fine + bucket.part : no_cell;
}

/// Of a duration. With hits or stops inside its error is another one than the row's.
std::size_t time_cell(const Threads &threads, const Row &row, const Timed &timed) {
    if (timed.hits == 0 && timed.stops == 0) {
        if (timed.ns < row.error_ns) return low_cell;
    } else {
        const std::uint64_t error =
            threads.error_of_call + timed.hits * threads.error_of_hit + timed.stops * threads.error_of_stop;
        if (timed.ns <= 3 * error) return no_cell; // round_error may make it greater
    }
    return first_cell + program::time_bucket(timed.ns);
}

std::size_t cell_of(const Hit &hit, const Row &row, std::uint64_t value, const Timed &timed) {
    if (row.kind == Row::Kind::count) return first_cell;
    if (value >= greatest) return no_cell;
    if (row.kind == Row::Kind::stats) return fine_cell(row, value);
    if (row.kind == Row::Kind::times) return time_cell(hit.threads, row, timed);
    return first_cell + static_cast<std::size_t>(std::bit_width(value));
}

bool add(const Hit &hit, Row &row, std::uint64_t value, const Timed &timed, Left &left) {
    const std::size_t cell = cell_of(hit, row, value, timed);
    if (cell == no_cell) return false;
    Sums &sums = add_to(hit.thread, row, cell, left).sums;
    if (row.kind != Row::Kind::stats) return true;
    if (value < sums.min) sums.min = value;
    if (value > sums.max) sums.max = value;
    sums.sum += value;
    if (row.is_of_durations == 0) return true;
    sums.inner += timed.inner_ns;
    sums.taken += timed.taken_ns;
    sums.hits += timed.hits;
    sums.stops += timed.stops;
    if (timed.is_nested) return true;
    sums.total += value;
    sums.taken_of_totals += timed.taken_ns;
    return true;
}

} // namespace

Row *row_of(const Hit &hit, std::uint32_t number) {
    if (hit.thread.times != 0) return nullptr; // ktrace has calls of its own to see to
    std::size_t at = number % row_keys;
    for (std::size_t i = 0; i < longest_row_search; i++, at = (at + 1) % row_keys) {
        const std::uint64_t found = *static_cast<const volatile std::uint64_t *>(&hit.thread.row_at[at]);
        if (found == 0) return nullptr;
        if (found >> 32 == number)
            return reinterpret_cast<Row *>(reinterpret_cast<std::byte *>(&hit.threads) + (found & 0xffffffffU));
    }
    return nullptr;
}

void add_filtered(Thread &thread, Row &row, Left &left) { add_to(thread, row, filtered_cell, left); }

bool add_value(const Hit &hit, Row &row, const program::Slot &value, const Timed &timed, Left &left) {
    if (value.state == program::Slot::State::ok) return add(hit, row, value.bits, timed, left);
    add_to(hit.thread, row, unread_cell, left);
    return true;
}

bool add_duration(const Hit &hit, Row &row, const Timed &timed, Left &left) {
    return add(hit, row, timed.ns, timed, left);
}

} // namespace ktrace::agent
