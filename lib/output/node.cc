// The values of a record (program/record.h), tag by tag, in both notations.
#include <algorithm>
#include <array>

#include "arch/host.h"
#include "base/text.h"
#include "output/notation.h"
#include "output/number.h"
#include "output/render.h"

namespace ktrace::output {

namespace {

using program::Node;
using program::Tag;

/// The type of a raw or pointee node; a location may know fewer types than a damaged record names.
const value::Type &type_of(const Node &node, const Context &context) {
    static const value::Type unknown;
    return context.types && node.type < context.types->size() ? context.types->at(node.type) : unknown;
}

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

void append_typed(TextNotation, std::string &out, const Node &node, const Context &context) {
    if (node.tag == Tag::pointee && !context.limits->follows) return TextNotation::pointer(out, node.number);
    append_text(out, type_of(node, context), node.bytes, *context.limits);
}

void append_typed(JsonNotation, std::string &out, const Node &node, const Context &context) {
    append_json(out, type_of(node, context), node.bytes);
}

void append_string(TextNotation, std::string &out, const Node &node, const Context &context) {
    const std::string_view shown = shortened(node.text(), context.limits->text);
    TextNotation::string(out, shown, node.truncated || shown.size() < node.text().size());
}

void append_string(JsonNotation, std::string &out, const Node &node, const Context &) {
    JsonNotation::string(out, node.text(), node.truncated);
}

template <class Notation> void append_node(std::string &out, const Node &node, const Context &context) {
    switch (node.tag) {
    case Tag::raw:
    case Tag::pointee: return append_typed(Notation{}, out, node, context);
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
    case Tag::stack: return append_stack(Notation{}, out, node, context);
    case Tag::symbol:
    case Tag::function: return append_symbol(Notation{}, out, node, context);
    case Tag::registers: return append_registers(Notation{}, out, node);
    }
}

} // namespace

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

void append_text(std::string &out, const Node &node, const Context &context) {
    append_node<TextNotation>(out, node, context);
}

void append_json(std::string &out, const Node &node, const Context &context) {
    append_node<JsonNotation>(out, node, context);
}

} // namespace ktrace::output
