// jump_share: how many of the functions in ELF files, and of the places that their calls return to, would get a jump.
//
// usage: jump_share FILE…
#include <cstdio>
#include <string>

#include "jump/words.h"
#include "tests/tools/share.h"

namespace ktrace::tools {

namespace {

constexpr auto breakpoints = static_cast<std::size_t>(Traps::breakpoints), all = static_cast<std::size_t>(Traps::all);

/// `1234 (56.7 %)`
std::string part_of(std::uint64_t part, std::uint64_t whole) {
    if (part == 0) return "-";
    char text[64];
    std::snprintf(text, sizeof text, "%llu (%.2f %%)", static_cast<unsigned long long>(part),
                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
    return text;
}

void print_line(const char *format, const std::string (&columns)[7]) {
    std::printf(format, columns[0].c_str(), columns[1].c_str(), columns[2].c_str(), columns[3].c_str(),
                columns[4].c_str(), columns[5].c_str(), columns[6].c_str());
}

void print_line(const std::string (&columns)[7]) { print_line("%-74s %9s %19s %19s %9s %19s %19s\n", columns); }

const char *place_of(const File &file) {
    if (file.is_library()) return "library";
    return file.module().position_independent() ? "program" : "program at its own addresses";
}

void print(const File &file, const FileShares &shares) {
    const Share &few_entries = shares.entries.of[breakpoints], &entries = shares.entries.of[all];
    const Share &few_returns = shares.returns.of[breakpoints], &returns = shares.returns.of[all];
    print_line({std::string(file.module().name()) + ", " + place_of(file), std::to_string(entries.sites),
                part_of(few_entries.jumps, entries.sites), part_of(entries.jumps, entries.sites),
                std::to_string(returns.sites), part_of(few_returns.jumps, returns.sites),
                part_of(returns.jumps, returns.sites)});
    for (std::size_t why = 0; why < arch::no_jump_reasons; ++why) {
        if (few_entries.refused[why] + entries.refused[why] + few_returns.refused[why] + returns.refused[why] == 0)
            continue;
        print_line({"  " + std::string(jump::words(static_cast<arch::NoJump>(why))), "",
                    part_of(few_entries.refused[why], entries.sites), part_of(entries.refused[why], entries.sites), "",
                    part_of(few_returns.refused[why], returns.sites), part_of(returns.refused[why], returns.sites)});
    }
}

int main(int count, char **arguments) {
    print_line({"", "entries", "int3 only", "all trap bytes", "returns", "int3 only", "all trap bytes"});
    int status = 0;
    for (int i = 1; i < count; ++i) {
        const auto file = File::open(arguments[i]);
        if (file) {
            print(*file, shares_of(*file));
        } else {
            std::fprintf(stderr, "jump_share: %s: %s\n", arguments[i], file.error().message.c_str());
            status = 1;
        }
    }
    return count > 1 ? status : 2;
}

} // namespace

} // namespace ktrace::tools

int main(int count, char **arguments) { return ktrace::tools::main(count, arguments); }
