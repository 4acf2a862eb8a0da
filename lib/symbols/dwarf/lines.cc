// Source lines (dwarf.h): FILE:LINE to addresses and back.
#include "symbols/dwarf/internal.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace ktrace::symbols {

namespace {

/// The numbers of the files of a line table that `wanted` means.
std::vector<bool> matching_files(const LineHeader &header, std::string_view wanted) {
    std::vector<bool> matching(header.files.size());
    for (std::size_t i = header.version >= 5 ? 0 : 1; i < matching.size(); ++i)
        matching[i] = matches_path(header.files[i], wanted);
    return matching;
}

std::string normal(std::string_view file) { return std::filesystem::path(file).lexically_normal().string(); }

/// Calls `use(unit, header, row)` for each statement row of the files that `wanted` means, in all units; tables of
/// units that do not know such a file are not run.
template <class Use> void for_each_row(Units &units, std::string_view wanted, Use use) {
    std::string path = normal(wanted);
    for (Unit *unit : units.all()) {
        const LineHeader &header = units.line_header(*unit);
        auto matching = matching_files(header, path);
        if (std::find(matching.begin(), matching.end(), true) == matching.end()) continue;
        bool usable = true, in_sequence = false;
        run_line_program(header, [&](const LineRow &row) {
            if (!in_sequence) usable = units.executable(row.address);
            in_sequence = !row.end_sequence;
            bool wanted_row =
                usable && row.is_statement && !row.end_sequence && row.file < matching.size() && matching[row.file];
            if (wanted_row) use(header, row);
            return true;
        });
    }
}

/// The code that a breakpoint on a line counts once: the innermost function or inlined instance at an address, and
/// which of the function's ranges.
using Block = std::pair<const void *, std::size_t>;

Block block_at(Units &units, std::uint64_t vaddr) {
    auto function = units.function(vaddr);
    if (!function) return {nullptr, 0};
    const void *innermost = function->addr;
    for (Dwarf_Die scope : scopes_at(*function, vaddr))
        if (tag(scope) == DW_TAG_inlined_subroutine) innermost = scope.addr;
    auto ranges = address_ranges(*function);
    auto range = std::find_if(ranges.begin(), ranges.end(),
                              [vaddr](const AddressRange &r) { return vaddr >= r.first && vaddr < r.second; });
    return {innermost, static_cast<std::size_t>(range - ranges.begin())};
}

} // namespace

std::vector<LineAddress> Dwarf::addresses_of(std::string_view file, int line) {
    std::map<std::uint64_t, LineAddress> by_address;
    if (line <= 0) return {};
    for_each_row(impl_->units, file, [&](const LineHeader &header, const LineRow &row) {
        if (row.line == static_cast<std::uint32_t>(line))
            by_address.emplace(row.address, LineAddress{row.address, header.file(row.file), line});
    });
    std::set<std::pair<const void *, std::size_t>> seen;
    std::vector<LineAddress> found;
    for (auto &[address, place] : by_address)
        if (Block block = block_at(impl_->units, address); block.first == nullptr || seen.insert(block).second)
            found.push_back(std::move(place));
    return found;
}

std::optional<int> Dwarf::nearest_line(std::string_view file, int line) {
    std::optional<int> next, last;
    for_each_row(impl_->units, file, [&](const LineHeader &, const LineRow &row) {
        if (row.line == 0 || row.line >= (1U << 30)) return;
        int here = static_cast<int>(row.line);
        if (here >= line) next = std::min(next.value_or(here), here);
        last = std::max(last.value_or(here), here);
    });
    return next ? next : last;
}

std::vector<std::string> Dwarf::files() {
    std::set<std::string> names;
    for (Unit *unit : impl_->units.all()) {
        const LineHeader &header = impl_->units.line_header(*unit);
        for (std::size_t i = header.version >= 5 ? 0 : 1; i < header.files.size(); ++i)
            if (!header.files[i].empty()) names.insert(header.files[i]);
    }
    return {names.begin(), names.end()};
}

namespace {

/// Of several rows for one address the last one counts; but one that begins a statement is what people look for.
const LineRow &statement_at(const std::vector<LineRow> &rows, std::vector<LineRow>::const_iterator last) {
    auto row = last;
    while (!row->is_statement && row != rows.begin() && (row - 1)->address == last->address &&
           !(row - 1)->end_sequence && (row - 1)->line != 0)
        --row;
    return row->is_statement ? *row : *last;
}

} // namespace

std::optional<LineAddress> Dwarf::line_at(std::uint64_t vaddr) {
    for (Unit *unit : impl_->units.covering(vaddr)) {
        const auto &rows = impl_->units.line_rows(*unit);
        auto next = std::upper_bound(rows.begin(), rows.end(), vaddr,
                                     [](std::uint64_t at, const LineRow &row) { return at < row.address; });
        if (next == rows.begin() || (next - 1)->end_sequence || next == rows.end()) continue;
        const LineRow &row = statement_at(rows, next - 1);
        if (row.line == 0 || row.line >= (1U << 30)) continue;
        return LineAddress{row.address, impl_->units.line_header(*unit).file(row.file), static_cast<int>(row.line)};
    }
    return std::nullopt;
}

} // namespace ktrace::symbols
