#include "complain.h"

#include <algorithm>
#include <cstdlib>

#include <unistd.h>

#include "base/text.h"
#include "output/terminal.h"
#include "output/writer.h"

namespace ktrace::cli {

namespace {

constexpr std::string_view prefix = "ktrace: ";

/// Columns that `text` takes on a terminal: a code point each (names and expressions hold no wide ones to speak of).
std::size_t columns(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }));
}

/// `text` with what could steer a terminal escaped, and nothing else: messages quote names from files and processes.
std::string printable(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        std::size_t length = std::max<std::size_t>(text::utf8_length(text), 1);
        std::string_view piece = text.substr(0, length);
        bool plain = piece == "\"" || piece == "\\";
        out += plain ? std::string(piece) : text::escape(piece);
        text.remove_prefix(length);
    }
    return out;
}

/// To standard error, all of it: signals of ktrace's own may interrupt the writing.
void say(std::string_view text) {
    output::Writer errors(STDERR_FILENO, "standard error");
    errors.write(text);
    errors.flush();
}

/// The sequences that switch a colour on and off; of plain text they are empty.
struct Colours {
    std::string_view of_prefix, of_pointer, off;
};
constexpr Colours plain{};
constexpr Colours coloured{"\x1b[1;31m", "\x1b[1;32m", "\x1b[0m"};

std::string pointer_line(const Error &error, const Colours &colours) {
    std::string_view source = error.source;
    auto begin = std::min(static_cast<std::size_t>(error.column), source.size());
    auto width = std::min(static_cast<std::size_t>(std::max(error.width, 1)), source.size() - begin);
    std::size_t before = prefix.size() + columns(printable(source.substr(0, begin)));
    std::size_t under = std::max<std::size_t>(columns(printable(source.substr(begin, width))), 1);
    std::string line(before, ' ');
    line.append(colours.of_pointer).append("^").append(under - 1, '~').append(colours.off);
    if (!error.hint.empty()) line += ' ' + printable(error.hint);
    return line + '\n';
}

std::string described(const Error &error, const Colours &colours) {
    std::string out(colours.of_prefix);
    out.append(prefix.substr(0, prefix.size() - 1)).append(colours.off).append(" ");
    bool points = error.column >= 0 && !error.source.empty();
    if (points) {
        // The source stands first, so that the second line can point into it; some messages begin with it themselves.
        if (!error.message.starts_with(error.source)) out += printable(error.source) + ": ";
        return out + printable(error.message) + '\n' + pointer_line(error, colours);
    }
    out += printable(error.message);
    if (!error.hint.empty()) out += "; " + printable(error.hint);
    return out + '\n';
}

} // namespace

std::string describe(const Error &error) { return described(error, plain); }

std::string printable_lines(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        std::size_t end = std::min(text.find('\n'), text.size());
        out += printable(text.substr(0, end));
        if (end < text.size()) out += text[end++];
        text.remove_prefix(end);
    }
    return out;
}

bool print(std::string_view text) {
    output::Writer writer(STDOUT_FILENO, "standard output");
    writer.write(text);
    writer.flush();
    const auto written = writer.take_error();
    if (!written) complain(written.error());
    return written.has_value();
}

void complain(const Error &error) { say(described(error, output::takes_colours(STDERR_FILENO) ? coloured : plain)); }

void relay(std::string_view lines) { say(printable_lines(lines)); }

void notify(const std::string &text) { say(std::string(prefix) + printable(text) + '\n'); }

} // namespace ktrace::cli
