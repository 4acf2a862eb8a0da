#include "probe/spec.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "symbols/names/name_pattern.h"

namespace ktrace::probe {

namespace {

constexpr std::string_view form_hint =
    "a SPEC is [MODULE:]SYMBOL[+OFFSET], [MODULE:]FILE:LINE, 0xADDRESS or MODULE:0xVADDR";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_decimal(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }
bool is_hex_like(std::string_view text) { return text.starts_with("0x") || text.starts_with("0X"); }

/// A parser of one SPEC: remembers its text for errors.
class SpecParser {
  public:
    explicit SpecParser(std::string_view text) : text_(text) { spec_.text = std::string(text); }
    Result<Spec> parse();

  private:
    tl::unexpected<Error> wrong(std::size_t column, std::size_t width, std::string message,
                                std::string hint = std::string(form_hint)) const;
    std::vector<std::size_t> separators() const;
    Status refuse_other_kinds(std::size_t separator) const;
    Result<Spec> parse_address();
    Result<Spec> parse_last(std::size_t separator);
    Result<Spec> parse_line(std::size_t separator, const std::vector<std::size_t> &colons);
    Result<Spec> parse_module_address(std::size_t separator, const std::vector<std::size_t> &colons);
    Result<Spec> parse_symbol(std::size_t from);
    Status take_offset(std::string_view &symbol, std::size_t from);
    Status take_version(std::string_view &symbol, std::size_t from);
    Status check_parentheses(std::string_view symbol, std::size_t from) const;

    std::string_view text_;
    Spec spec_;
};

tl::unexpected<Error> SpecParser::wrong(std::size_t column, std::size_t width, std::string message,
                                        std::string hint) const {
    Error error{Error::Kind::usage, std::move(message),       std::move(hint),
                spec_.text,         static_cast<int>(column), static_cast<int>(std::max<std::size_t>(width, 1))};
    return tl::unexpected<Error>(std::move(error));
}

/// Where a bracketed part that starts at `at` ends (its closing bracket), or `at` itself where it is not closed.
std::size_t skip_brackets(std::string_view text, std::size_t at) {
    int depth = 0;
    for (std::size_t i = at; i < text.size(); i++) {
        char c = text[i];
        if (c == '(' || c == '<' || c == '[' || c == '{') depth++;
        if (c == ')' || c == '>' || c == ']' || c == '}') depth--;
        if (depth == 0) return i;
    }
    return at;
}

/// Behind the word `operator` and its symbol at `at`; `at` itself where there is none.
std::size_t skip_operator(std::string_view text, std::size_t at) {
    constexpr std::size_t word = std::string_view("operator").size();
    if (!symbols::is_operator_word(text, at)) return at;
    std::size_t symbol = symbols::operator_symbol(text, at + word);
    return at + word + symbol;
}

/// Calls `at_top(index)` for each character that is in no bracket and in no operator's name.
template <class AtTop> void walk_top(std::string_view text, AtTop &&at_top) {
    for (std::size_t i = 0; i < text.size(); i++) {
        if (std::size_t behind = skip_operator(text, i); behind != i) {
            i = behind - 1;
            continue;
        }
        char c = text[i];
        if (c == '(' || c == '<' || c == '[' || c == '{') {
            std::size_t close = skip_brackets(text, i);
            if (close != i) {
                i = close;
                continue;
            }
        }
        at_top(i);
    }
}

/// The colons that part a SPEC: single ones, or the first of three (`lib:::f` is ::f in lib); never C++'s `::`.
std::vector<std::size_t> SpecParser::separators() const {
    std::vector<std::size_t> found;
    std::size_t run_end = 0; // behind the last run of colons seen
    walk_top(text_, [&](std::size_t i) {
        if (text_[i] != ':' || i < run_end) return;
        run_end = std::min(text_.find_first_not_of(':', i), text_.size());
        if ((run_end - i) % 2 == 1) found.push_back(i);
    });
    return found;
}

/// Kinds of probes of bpftrace, perf and ftrace that stand where a MODULE would, and what there is in place of them.
/// The last part of the text goes behind `instead`.
struct OtherProbe {
    std::string_view kind;
    const char *why;
    const char *instead;
};
constexpr const char *no_system_calls = "system calls are not probed, only code of the process";
constexpr const char *no_markers = "static markers (USDT) have no probes of their own";
constexpr std::array<OtherProbe, 10> other_probes{
    {{"syscall", no_system_calls, "the C library's function makes it: libc:"},
     {"syscalls", no_system_calls, "the C library's function makes it: libc:"},
     {"raw_syscalls", no_system_calls, "the C library's function makes it: libc:"},
     {"tracepoint", no_system_calls, "the C library's function makes it: libc:"},
     {"usdt", no_markers,
      "probe the function or the line (FILE:LINE) that holds it; ktrace list -p PID shows functions"},
     {"sdt", no_markers,
      "probe the function or the line (FILE:LINE) that holds it; ktrace list -p PID shows functions"},
     {"kprobe", "the kernel is not probed, only code of the process", "its function for it may be: libc:"},
     {"kretprobe", "the kernel is not probed, only code of the process", "its function for it may be: libc:"},
     {"uprobe", "all probes are in a process, so no kind stands before the place", "write "},
     {"uretprobe", "all probes are in a process, so no kind stands before the place", "write it behind -r: "}}};

/// The name in `usdt:…` is left alone; of `tracepoint:syscalls:sys_enter_openat` it is openat; of
/// `uprobe:/bin/bash:readline` all behind `uprobe:`.
std::string instead_of(const OtherProbe &other, std::string_view rest) {
    std::string hint = other.instead;
    if (hint.ends_with("libc:")) {
        std::string_view name = rest.substr(rest.rfind(':') + 1);
        for (std::string_view prefix : {"sys_enter_", "sys_exit_", "__x64_sys_", "do_sys_", "sys_"})
            if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
        return hint + std::string(name);
    }
    return hint.ends_with(' ') ? hint + std::string(rest) : hint;
}

Status SpecParser::refuse_other_kinds(std::size_t separator) const {
    const std::string_view first = text_.substr(0, separator);
    for (const OtherProbe &other : other_probes)
        if (first == other.kind)
            return wrong(0, first.size(), other.why, instead_of(other, text_.substr(separator + 1)));
    return {};
}

Result<Spec> SpecParser::parse() {
    if (text::trim(text_).empty()) return wrong(0, 1, "a SPEC is empty");
    if (is_hex_like(text_) && text_.find(':') == std::string_view::npos) return parse_address();
    if (is_decimal(text_))
        return wrong(0, text_.size(), spec_.text + " is a number; an address is written in hex, with 0x");
    auto colons = separators();
    if (colons.empty()) {
        if (text_.starts_with('/') || text_.starts_with("./"))
            return wrong(0, text_.size(), spec_.text + " is a path, and names no place in the file",
                         "write " + spec_.text + ":SYMBOL");
        return parse_symbol(0);
    }
    std::size_t separator = colons.back();
    std::string_view last = text_.substr(separator + 1);
    if (separator == 0) return wrong(0, 1, "the MODULE or FILE before the colon is missing");
    if (last.empty()) return wrong(separator, 1, "nothing follows the colon");
    if (auto known = refuse_other_kinds(colons.front()); !known) return fail(known.error());
    if (std::string_view first = text_.substr(0, colons.front()); is_hex_like(first) && text::parse_u64(first))
        return wrong(0, text_.size(), "a symbol and an address together are not one place", "give one or the other");
    if (is_digit(last[0]))
        return is_hex_like(last) ? parse_module_address(separator, colons) : parse_line(separator, colons);
    if (colons.size() > 1 && text_.substr(0, separator).find('/') == std::string_view::npos)
        return wrong(colons[1], 1, "there are too many colons");
    spec_.module = std::string(text_.substr(0, separator));
    return parse_symbol(separator + 1);
}

Result<Spec> SpecParser::parse_address() {
    auto value = text::parse_u64(text_);
    if (!value) {
        std::size_t digits = std::min(text_.find_first_not_of("0123456789abcdefABCDEF", 2), text_.size());
        if (digits < text_.size() && digits > 2 && text_[digits] == '+')
            return wrong(digits, text_.size() - digits, "an address takes no offset", "write the sum");
        bool too_large = digits == text_.size() && digits > 2;
        return wrong(too_large ? 0 : digits, too_large ? digits : 1,
                     spec_.text + (too_large ? " is larger than any address" : " is not a hex number"));
    }
    spec_.form = Spec::Form::address;
    spec_.address = *value;
    return spec_;
}

Result<Spec> SpecParser::parse_line(std::size_t separator, const std::vector<std::size_t> &colons) {
    std::string_view last = text_.substr(separator + 1);
    std::size_t digits = std::min(last.find_first_not_of("0123456789"), last.size());
    if (digits < last.size() && last[digits] == '+')
        return wrong(separator + 1 + digits, last.size() - digits, "FILE:LINE takes no offset");
    if (digits < last.size())
        return wrong(separator + 1 + digits, last.size() - digits,
                     std::string(last) + " is neither a line nor a symbol");
    auto line = text::parse_u64(last);
    if (!line || *line == 0 || *line > INT32_MAX)
        return wrong(separator + 1, last.size(),
                     std::string(last) + " is not the number of a line; lines count from 1");
    std::size_t file_at = 0;
    if (colons.size() > 1) {
        file_at = colons[colons.size() - 2] + 1;
        spec_.module = std::string(text_.substr(0, file_at - 1));
        if (spec_.module.empty()) return wrong(0, 1, "the MODULE before the colon is missing");
    }
    spec_.file = std::string(text_.substr(file_at, separator - file_at));
    if (spec_.file.empty()) return wrong(separator, 1, "the FILE before the line is missing");
    spec_.form = Spec::Form::line;
    spec_.line = static_cast<int>(*line);
    spec_.symbol_column = static_cast<int>(file_at);
    spec_.offset_column = static_cast<int>(separator + 1);
    return spec_;
}

/// True where `text` ends like a symbol with an offset: +0x10, +16.
bool ends_with_offset(std::string_view text) {
    std::size_t plus = text.rfind('+');
    return plus != std::string_view::npos && plus != 0 && text::parse_u64(text.substr(plus + 1)).has_value();
}

Result<Spec> SpecParser::parse_module_address(std::size_t separator, const std::vector<std::size_t> &colons) {
    std::string_view module = text_.substr(0, separator), last = text_.substr(separator + 1);
    bool is_path = module.find('/') != std::string_view::npos;
    bool is_symbol =
        ends_with_offset(module) || (!is_path && (colons.size() > 1 || module.find("::") != std::string_view::npos ||
                                                  module.find('(') != std::string_view::npos));
    if (is_symbol)
        return wrong(separator + 1, last.size(), "a symbol and an address together are not one place",
                     "give SYMBOL+OFFSET, or MODULE:0xVADDR");
    auto value = text::parse_u64(last);
    if (!value) {
        std::size_t digits = std::min(last.find_first_not_of("0123456789abcdefABCDEF", 2), last.size());
        if (digits < last.size() && digits > 2 && last[digits] == '+')
            return wrong(separator + 1 + digits, last.size() - digits, "an address takes no offset", "write the sum");
        return wrong(separator + 1, last.size(), std::string(last) + " is not a hex number of 64 bits");
    }
    spec_.form = Spec::Form::module_address;
    spec_.module = std::string(module);
    spec_.address = *value;
    spec_.symbol_column = spec_.offset_column = static_cast<int>(separator + 1);
    return spec_;
}

Status SpecParser::take_offset(std::string_view &symbol, std::size_t from) {
    std::size_t plus = std::string_view::npos;
    walk_top(symbol, [&](std::size_t i) {
        if (symbol[i] == '+') plus = i;
    });
    if (std::size_t last = symbol.rfind('+'); last != std::string_view::npos && last + 1 < symbol.size() &&
                                              is_digit(symbol[last + 1]) && plus == std::string_view::npos) {
        // `operator+4`: the last +NUMBER is the offset, whatever is before it.
        bool in_brackets = symbol.find_first_of(")>]}", last) != std::string_view::npos;
        if (!in_brackets) plus = last;
    }
    if (plus == std::string_view::npos) return {};
    std::string_view number = symbol.substr(plus + 1);
    auto value = text::parse_u64(number);
    if (number.empty()) return wrong(from + plus, 1, "a number is missing behind the +");
    if (!value)
        return wrong(from + plus + 1, number.size(),
                     std::string(number) + (is_decimal(number) ? " is too large for an offset" : " is not a number"),
                     "an offset is decimal or hex with 0x");
    spec_.offset = *value;
    spec_.has_offset = true;
    spec_.offset_column = static_cast<int>(from + plus + 1);
    symbol = symbol.substr(0, plus);
    return {};
}

Status SpecParser::take_version(std::string_view &symbol, std::size_t from) {
    std::size_t at = std::string_view::npos;
    walk_top(symbol, [&](std::size_t i) {
        if (symbol[i] == '@' && i != 0 && at == std::string_view::npos) at = i;
    });
    if (at == std::string_view::npos) return {};
    std::string_view version = symbol.substr(at + (symbol.substr(at).starts_with("@@") ? 2 : 1));
    if (version.empty()) return wrong(from + at, symbol.size() - at, "a version is missing behind the @");
    if (is_hex_like(version) && text::parse_u64(version))
        return wrong(from + at + 1, version.size(), "a symbol and an address together are not one place",
                     "give SYMBOL+OFFSET, or MODULE:0xVADDR");
    if (version == "plt")
        return wrong(from + at, symbol.size() - at, std::string(symbol) + " is the linker's stub, not a function",
                     "probe " + std::string(symbol.substr(0, at)));
    spec_.version = std::string(version);
    symbol = symbol.substr(0, at);
    return {};
}

Status SpecParser::check_parentheses(std::string_view symbol, std::size_t from) const {
    if (text::is_glob(symbol)) return {};
    std::size_t open = symbols::parameter_list(symbol);
    if (open != std::string_view::npos && skip_brackets(symbol, open) == open)
        return wrong(from + open, 1, "the parenthesis is not closed");
    return {};
}

Result<Spec> SpecParser::parse_symbol(std::size_t from) {
    std::string_view symbol = text_.substr(from);
    while (symbol.starts_with("::")) { // ::f, f of the global namespace
        symbol.remove_prefix(2);
        from += 2;
    }
    spec_.symbol_column = static_cast<int>(from);
    if (auto status = take_offset(symbol, from); !status) return tl::unexpected(status.error());
    if (auto status = take_version(symbol, from); !status) return tl::unexpected(status.error());
    if (auto status = check_parentheses(symbol, from); !status) return tl::unexpected(status.error());
    symbol = text::trim(symbol);
    if (symbol.empty()) return wrong(from, text_.size() - from, "the SYMBOL is missing");
    spec_.form = Spec::Form::symbol;
    spec_.symbol = std::string(symbol);
    return spec_;
}

} // namespace

Result<Spec> parse_spec(std::string_view text) { return SpecParser(text).parse(); }

} // namespace ktrace::probe
