// Notations: how the atoms of a value are written, once as text for people and once as JSON (RFC 8259). render.cc walks
// values and asks one of the two for every atom; the two have the same functions, and none of them has state.
//
// Invariant: the written text has no control characters (C0, DEL, C1) and is valid UTF-8, for any bytes of the
// target's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ktrace::output {

/// Appends `raw` as a JSON string with its quotes; bytes that are no UTF-8 as the text \xNN.
void append_json_string(std::string &out, std::string_view raw);

/// Appends a code point as UTF-8; a number that is none as U+FFFD.
void append_utf8(std::string &out, std::uint32_t code_point);

struct TextNotation {
    static void begin_object(std::string &out) { out += '{'; }
    static void end_object(std::string &out) { out += '}'; }
    static void key(std::string &out, std::string_view name, bool first);
    static void separator(std::string &out) { out += ", "; }
    static void string(std::string &out, std::string_view raw, bool truncated);
    static void character(std::string &out, std::string_view raw);
    static void enumerators(std::string &out, std::string_view names);
    static void pointer(std::string &out, std::uint64_t value);
    static void floating(std::string &out, long double value, std::uint64_t size);
    static void decimal(std::string &out, std::string_view digits) { out += digits; }
    static void complex(std::string &out, long double real, long double imaginary, std::uint64_t size);
    static void fault(std::string &out, std::uint64_t address);
    static void not_applicable(std::string &out) { out += "<n/a>"; }
    static void unavailable(std::string &out) { out += "<optimized out>"; }
    static void not_known(std::string &out) { out += "<not known>"; }
    static void variant(std::string &out, std::string_view name);
    static void lone_variant(std::string &out, std::string_view name) { variant(out, name); }
    static void end_variant(std::string &) {}
    static void begin_list(std::string &out) { out += '['; }
    static void end_list(std::string &out) { out += ']'; }
    static void begin_map(std::string &out) { out += '{'; }
    static void begin_entry(std::string &out) { out += '['; }
    static void entry_value(std::string &out) { out += "]="; }
    static void end_entry(std::string &) {}
    static void end_map(std::string &out) { out += '}'; }
    static void nothing(std::string &out, std::string_view word) { out += word; }
    static void begin_tuple(std::string &out) { out += '('; }
    static void end_tuple(std::string &out) { out += ')'; }
    static void elided_value(std::string &out) { out += "..."; }                              // in place of a value
    static void elided_rest(std::string &out, bool first) { out += first ? "..." : ", ..."; } // behind the last one
};

struct JsonNotation {
    static void begin_object(std::string &out) { out += '{'; }
    static void end_object(std::string &out) { out += '}'; }
    static void key(std::string &out, std::string_view name, bool first);
    static void separator(std::string &out) { out += ','; }
    static void string(std::string &out, std::string_view raw, bool) { append_json_string(out, raw); }
    static void character(std::string &out, std::string_view raw) { append_json_string(out, raw); }
    static void enumerators(std::string &out, std::string_view names) { append_json_string(out, names); }
    static void pointer(std::string &out, std::uint64_t value);
    static void floating(std::string &out, long double value, std::uint64_t size); // nan: null; inf: a string
    static void decimal(std::string &out, std::string_view digits);                // as floating
    static void complex(std::string &out, long double real, long double imaginary, std::uint64_t size); // [re,im]
    static void fault(std::string &out, std::uint64_t address);
    static void not_applicable(std::string &out) { out += "null"; }
    static void unavailable(std::string &out) { out += R"({"unavailable":"optimized out"})"; }
    static void not_known(std::string &out) { out += "null"; } // in a list; members are left out
    static void variant(std::string &out, std::string_view name);
    static void lone_variant(std::string &out, std::string_view name) { append_json_string(out, name); }
    static void end_variant(std::string &out) { out += '}'; }
    static void begin_list(std::string &out) { out += '['; }
    static void end_list(std::string &out) { out += ']'; }
    static void begin_map(std::string &out) { out += '['; }
    static void begin_entry(std::string &out) { out += '['; }
    static void entry_value(std::string &out) { out += ','; }
    static void end_entry(std::string &out) { out += ']'; }
    static void end_map(std::string &out) { out += ']'; }
    static void nothing(std::string &out, std::string_view) { out += "null"; }
    static void begin_tuple(std::string &out) { out += '['; }
    static void end_tuple(std::string &out) { out += ']'; }
    static void elided_value(std::string &out) { out += "null"; }
    static void elided_rest(std::string &, bool) {}
};

} // namespace ktrace::output
