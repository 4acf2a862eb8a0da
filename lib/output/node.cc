// The values of a record (program/record.h), tag by tag, in both notations.
#include "output/node.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>

#include "arch/host.h"
#include "base/text.h"
#include "output/notation.h"
#include "output/number.h"

namespace ktrace::output {

namespace {

using program::Node;
using program::Tag;

/// Calls each(name, value) for every general register of a registers node.
template <class Each> void for_each_register(const Node &node, Each each) {
    for (const arch::RegisterInfo &info : arch::Host::registers()) {
        if (info.file != arch::RegisterInfo::File::general) continue;
        if (std::size_t{info.offset} + info.width > node.bytes.size()) continue;
        each(info.name, static_cast<std::uint64_t>(load_unsigned(node.bytes.subspan(info.offset, info.width))));
    }
}

void append_registers(TextNotation, std::string &out, const Node &node) {
    const char *separator = "";
    for_each_register(node, [&](std::string_view name, std::uint64_t value) {
        out += separator;
        out += name;
        out += '=';
        append_hex(out, value);
        separator = " ";
    });
}

void append_registers(JsonNotation, std::string &out, const Node &node) {
    bool first = true;
    out += '{';
    for_each_register(node, [&](std::string_view name, std::uint64_t value) {
        JsonNotation::key(out, name, first);
        JsonNotation::pointer(out, value);
        first = false;
    });
    out += '}';
}

/// `symbol+0x4`; without one, what is the same in every run, `module:0x4`, or the address. An inlined function has no
/// address of its own to count from.
void append_frame_place(std::string &out, const NamedFrame &frame) {
    if (frame.symbol.empty()) {
        if (!frame.module.empty()) out += text::escape(frame.module) + ':';
        return append_hex(out, frame.module.empty() ? frame.address : frame.offset);
    }
    out += text::escape(frame.symbol);
    if (frame.inlined || frame.trampoline) return;
    out += '+';
    append_hex(out, frame.offset);
}

void append_stack(TextNotation, std::string &out, const Node &node, const Context &context) {
    const char *separator = "";
    for (const NamedFrame &frame : name_frames(node, context)) {
        out += separator;
        append_frame_place(out, frame);
        separator = " < ";
    }
}

void append_frame_json(std::string &out, const NamedFrame &frame) {
    out += "{\"addr\":";
    JsonNotation::pointer(out, frame.address);
    if (!frame.symbol.empty()) {
        out += ",\"symbol\":";
        append_json_string(out, frame.symbol);
        out += ",\"offset\":";
        append_decimal(out, Unsigned128{frame.offset});
    } else if (!frame.module.empty()) {
        out += ",\"vaddr\":";
        JsonNotation::pointer(out, frame.offset);
    }
    if (!frame.module.empty()) {
        out += ",\"module\":";
        append_json_string(out, frame.module);
    }
    if (!frame.file.empty()) {
        out += ",\"file\":";
        append_json_string(out, frame.file);
        out += ",\"line\":" + std::to_string(frame.line);
    }
    out += frame.inlined ? ",\"inlined\":true}" : ",\"inlined\":false}";
}

void append_stack(JsonNotation, std::string &out, const Node &node, const Context &context) {
    const char *separator = "[";
    for (const NamedFrame &frame : name_frames(node, context)) {
        out += separator;
        append_frame_json(out, frame);
        separator = ",";
    }
    out += separator[0] == '[' ? "[]" : "]";
}

/// `main+0x24 [worker]` of an address, `main [worker]` of a function: inlined ones are left out, since they have no
/// address of their own.
std::string symbol_text(const Node &node, const Context &context) {
    const bool is_function = node.tag == Tag::function;
    const std::uint64_t address = is_function ? node.number & ~program::interrupted : node.number;
    const bool is_return = is_function && (node.number & program::interrupted) == 0;
    std::vector<NamedFrame> named;
    if (context.symbolizer) named = context.symbolizer->name(context.pid, address, is_return);
    std::string out;
    if (named.empty() || (named.back().symbol.empty() && named.back().module.empty())) {
        append_hex(out, address);
        return out;
    }
    const NamedFrame &frame = named.back();
    if (is_function && !frame.symbol.empty())
        out = text::escape(frame.symbol);
    else
        append_frame_place(out, frame);
    if (!frame.module.empty()) out += " [" + text::escape(frame.module) + ']';
    return out;
}

void append_symbol(TextNotation, std::string &out, const Node &node, const Context &context) {
    out += symbol_text(node, context);
}

void append_symbol(JsonNotation, std::string &out, const Node &node, const Context &context) {
    append_json_string(out, symbol_text(node, context));
}

template <class Notation> const ValueLimits &limits_of(const Context &context) {
    return std::is_same_v<Notation, TextNotation> ? *context.limits : ValueLimits::all;
}

/// Of wide characters, behind a pointer.
template <class Notation> void append_wide_text(std::string &out, const Node &node, const Context &context, int depth) {
    value::Type text;
    text.kind = value::Type::Kind::array;
    text.target = &type_of(node, context);
    const std::size_t unit = std::max<std::size_t>(text.target->size, 1);
    const bool has_end = node.bytes.size() >= unit && load_unsigned(node.bytes.last(unit)) == 0;
    text.count = node.bytes.size() / unit + (has_end ? 0 : 1);
    text.size = text.count * text.target->size;
    append_value<Notation>(out, text, node.bytes, limits_of<Notation>(context), depth, &context, nullptr);
}

template <class Notation> void append_typed(std::string &out, const Node &node, const Context &context, int depth) {
    constexpr bool is_text = std::is_same_v<Notation, TextNotation>;
    if (node.tag == Tag::pointee && type_of(node, context).kind == value::Type::Kind::char_)
        return append_wide_text<Notation>(out, node, context, depth);
    if (is_text && node.tag == Tag::pointee && !context.limits->follows) return Notation::pointer(out, node.number);
    append_value<Notation>(out, type_of(node, context), node.bytes, is_text ? *context.limits : ValueLimits::all, depth,
                           &context, nullptr);
}

void append_string(TextNotation, std::string &out, const Node &node, const Context &context) {
    const std::string_view shown = shortened(node.text(), context.limits->text);
    TextNotation::string(out, shown, node.truncated || shown.size() < node.text().size());
}

void append_string(JsonNotation, std::string &out, const Node &node, const Context &) {
    JsonNotation::string(out, node.text(), node.truncated);
}

// Groups (program/record.h: Form).

using program::Form;

std::vector<Node> nodes_of(const Node &group) {
    std::vector<Node> all;
    program::RecordReader reader(group.bytes);
    while (auto node = reader.next()) all.push_back(*node);
    return all;
}

template <class Notation> void append_list(std::string &out, const Node &group, const Context &context, int depth) {
    const std::vector<Node> nodes = nodes_of(group);
    bool first = true;
    Notation::begin_list(out);
    for (const Node &node : nodes) {
        if (!std::exchange(first, false)) Notation::separator(out);
        append_node<Notation>(out, node, context, depth);
    }
    if (group.truncated) Notation::elided_rest(out, first);
    Notation::end_list(out);
}

template <class Notation> void append_tuple(std::string &out, const Node &group, const Context &context, int depth) {
    bool first = true;
    Notation::begin_tuple(out);
    for (const Node &node : nodes_of(group)) {
        if (!std::exchange(first, false)) Notation::separator(out);
        append_node<Notation>(out, node, context, depth);
    }
    if (group.truncated) Notation::elided_rest(out, first);
    Notation::end_tuple(out);
}

/// `{["a"]=1, ["b"]=2}`; JSON: a list of pairs, for keys may be of any type.
template <class Notation> void append_map(std::string &out, const Node &group, const Context &context, int depth) {
    const std::vector<Node> nodes = nodes_of(group);
    bool first = true;
    Notation::begin_map(out);
    for (std::size_t i = 0; i + 1 < nodes.size(); i += 2) {
        if (!std::exchange(first, false)) Notation::separator(out);
        Notation::begin_entry(out);
        append_node<Notation>(out, nodes[i], context, depth);
        Notation::entry_value(out);
        append_node<Notation>(out, nodes[i + 1], context, depth);
        Notation::end_entry(out);
    }
    if (group.truncated) Notation::elided_rest(out, first);
    Notation::end_map(out);
}

template <class Notation> void append_object(std::string &out, const Node &group, const Context &context, int depth) {
    const std::vector<Node> nodes = nodes_of(group);
    if (nodes.empty()) return Notation::elided_value(out);
    if (nodes[0].tag != Tag::raw) return append_node<Notation>(out, nodes[0], context, depth); // it cannot be read
    Parts parts{nodes[0].bytes.data(), {}};
    for (std::size_t i = 1; i + 1 < nodes.size(); i += 2) parts.nodes.emplace_back(nodes[i].number, nodes[i + 1]);
    append_value<Notation>(out, type_of(nodes[0], context), nodes[0].bytes, limits_of<Notation>(context), depth,
                           &context, &parts);
}

/// The unit of a std::chrono::duration by its ratio: `duration<long, std::ratio<1, 1000> >`.
std::string unit_of(std::string_view name) {
    std::uint64_t numerator = 1, denominator = 1;
    if (const std::size_t at = name.find("ratio<"); at != std::string_view::npos) {
        const char *end = name.data() + name.size();
        auto read = [&](const char *from, std::uint64_t &into) {
            while (from != end && (*from < '0' || *from > '9')) ++from;
            return std::from_chars(from, end, into).ptr;
        };
        read(read(name.data() + at, numerator), denominator);
    }
    struct Unit {
        std::uint64_t numerator, denominator;
        const char *name;
    };
    static constexpr std::array<Unit, 7> units = {{{1, 1'000'000'000, "ns"},
                                                   {1, 1'000'000, "us"},
                                                   {1, 1000, "ms"},
                                                   {1, 1, "s"},
                                                   {60, 1, "min"},
                                                   {3600, 1, "h"},
                                                   {86400, 1, "d"}}};
    for (const Unit &unit : units)
        if (unit.numerator == numerator && unit.denominator == denominator) return unit.name;
    return "*" + std::to_string(numerator) + (denominator != 1 ? "/" + std::to_string(denominator) : "") + "s";
}

template <class Notation> void append_quantity(std::string &out, const Node &group, const Context &context, int depth) {
    const std::vector<Node> nodes = nodes_of(group);
    if (nodes.empty()) return Notation::elided_value(out);
    append_node<Notation>(out, nodes[0], context, depth);
    const bool has_unit = std::is_same_v<Notation, TextNotation> && nodes[0].tag == Tag::raw;
    if (has_unit) out += unit_of(type_of(group, context).name);
}

/// `int(42)`, `main.Circle{.R=1.5}`.
template <class Notation> void append_named(std::string &out, const Node &group, const Context &context, int depth) {
    const std::vector<Node> nodes = nodes_of(group);
    if (nodes.size() < 2) return Notation::elided_value(out);
    std::string value;
    append_node<Notation>(value, nodes[1], context, depth);
    Notation::variant(out, nodes[0].text());
    const bool has_own = std::is_same_v<Notation, JsonNotation> || value.starts_with('{');
    if (!has_own) Notation::begin_tuple(out);
    out += value;
    if (!has_own) Notation::end_tuple(out);
    Notation::end_variant(out);
}

template <class Notation> void append_nothing(std::string &out, std::string_view type) {
    Notation::nothing(out, type.starts_with("std::") ? "nothing" : "nil");
}

template <class Notation> void append_group(std::string &out, const Node &node, const Context &context, int depth) {
    const auto form = static_cast<Form>(node.number);
    const bool nests = form == Form::list || form == Form::map || form == Form::tuple;
    if (nests && depth >= limits_of<Notation>(context).levels) return Notation::elided_value(out);
    switch (form) {
    case Form::list: return append_list<Notation>(out, node, context, depth + 1);
    case Form::map: return append_map<Notation>(out, node, context, depth + 1);
    case Form::tuple: return append_tuple<Notation>(out, node, context, depth + 1);
    case Form::object: return append_object<Notation>(out, node, context, depth);
    case Form::named: return append_named<Notation>(out, node, context, depth);
    case Form::quantity: return append_quantity<Notation>(out, node, context, depth);
    case Form::nothing: return append_nothing<Notation>(out, type_of(node, context).name);
    }
    Notation::elided_value(out); // a damaged record
}

} // namespace

const value::Type &type_of(const Node &node, const Context &context) {
    static const value::Type unknown;
    return context.types && node.type < context.types->size() ? context.types->at(node.type) : unknown;
}

template <class Notation> void append_node(std::string &out, const Node &node, const Context &context, int depth) {
    switch (node.tag) {
    case Tag::raw:
    case Tag::pointee: return append_typed<Notation>(out, node, context, depth);
    case Tag::string:
    case Tag::buffer: return append_string(Notation{}, out, node, context);
    case Tag::sint: return append_decimal(out, Signed128{node.sint()});
    case Tag::uint: return append_decimal(out, Unsigned128{node.number});
    case Tag::hex: return Notation::pointer(out, node.number);
    case Tag::floating: return Notation::floating(out, static_cast<long double>(node.floating), sizeof(double));
    case Tag::boolean: out += node.number != 0 ? "true" : "false"; return;
    case Tag::fault: return Notation::fault(out, node.number);
    case Tag::na: return Notation::not_applicable(out);
    case Tag::unavailable: return Notation::unavailable(out);
    case Tag::not_known: return Notation::not_known(out);
    case Tag::stack: return append_stack(Notation{}, out, node, context);
    case Tag::symbol:
    case Tag::function: return append_symbol(Notation{}, out, node, context);
    case Tag::registers: return append_registers(Notation{}, out, node);
    case Tag::elided: return Notation::elided_value(out);
    case Tag::group: return append_group<Notation>(out, node, context, depth);
    }
}

template void append_node<TextNotation>(std::string &, const Node &, const Context &, int);
template void append_node<JsonNotation>(std::string &, const Node &, const Context &, int);

namespace {

/// The C library's code that a handler returns to has no name of its own that says anything: it is named as debuggers
/// call it.
NamedFrame signal_frame(std::uint64_t address) {
    NamedFrame frame;
    frame.address = address;
    frame.symbol = "<signal handler called>";
    frame.trampoline = true;
    return frame;
}

} // namespace

std::vector<NamedFrame> name_frames(const Node &stack, const Context &context) {
    std::vector<NamedFrame> frames;
    const std::size_t most = context.lines != 0 ? context.lines : SIZE_MAX;
    for (std::size_t i = 0; i < stack.frames() && frames.size() < most; i++) {
        std::uint64_t address = stack.frame_address(i);
        if (i + 1 < stack.frames() && !stack.is_return_address(i + 1)) {
            frames.push_back(signal_frame(address));
            continue;
        }
        std::vector<NamedFrame> named;
        if (context.symbolizer) named = context.symbolizer->name(context.pid, address, stack.is_return_address(i));
        if (named.empty()) named.push_back({address, {}, 0, {}, {}, 0, false, false});
        std::move(named.begin(), named.end(), std::back_inserter(frames));
    }
    if (frames.size() > most) frames.resize(most);
    return frames;
}

void append_frame_text(std::string &out, const NamedFrame &frame) {
    append_frame_place(out, frame);
    if (!frame.module.empty()) out += " [" + text::escape(frame.module) + ']';
    if (!frame.file.empty()) out += ' ' + text::escape(frame.file) + ':' + std::to_string(frame.line);
    if (frame.inlined) out += " (inlined)";
}

void append_frame_lines(std::string &out, const Node &stack, const Context &context) {
    int number = 0;
    for (const NamedFrame &frame : name_frames(stack, context)) {
        std::string label = '#' + std::to_string(number++);
        label.resize(std::max<std::size_t>(label.size() + 1, 4), ' ');
        out += "    " + label;
        append_frame_text(out, frame);
        out += '\n';
    }
}

void append_text(std::string &out, const Node &node, const Context &context) {
    append_node<TextNotation>(out, node, context, 0);
}

void append_json(std::string &out, const Node &node, const Context &context) {
    append_node<JsonNotation>(out, node, context, 0);
}

} // namespace ktrace::output
