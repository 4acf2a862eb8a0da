#include "sample/stack_text.h"

#include <algorithm>
#include <span>

#include "output/render.h"
#include "program/tables/record_reader.h"

namespace ktrace::sample {

namespace {

program::Node node_of(const Stack &stack) {
    program::Node node;
    node.tag = program::Tag::stack;
    node.bytes = std::as_bytes(std::span(stack));
    return node;
}

output::Context context_of(Pid pid, output::Symbolizer &symbolizer) {
    output::Context context;
    context.symbolizer = &symbolizer;
    context.pid = pid.value;
    return context;
}

} // namespace

std::vector<output::NamedFrame> name_stack(Pid pid, const Stack &stack, output::Symbolizer &symbolizer) {
    return output::name_frames(node_of(stack), context_of(pid, symbolizer));
}

void append_stack_lines(std::string &out, Pid pid, const Stack &stack, output::Symbolizer &symbolizer) {
    output::append_frame_lines(out, node_of(stack), context_of(pid, symbolizer));
}

void append_stack_json(std::string &out, Pid pid, const Stack &stack, output::Symbolizer &symbolizer) {
    output::append_json(out, node_of(stack), context_of(pid, symbolizer));
}

} // namespace ktrace::sample
