// folded: a line a stack, as flame graphs are made of.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "export/sinks.h"
#include "output/render.h"
#include "output/table_lines.h"

namespace ktrace::exports {

namespace {

using output::NamedFrame;
using output::TableLine;
using program::Tag;

/// A frame's name cannot hold what parts frames. Without a symbol it is its place in the file, else its address.
std::string frame_text(const NamedFrame &frame) {
    std::string name = text::escape(frame.symbol);
    if (name.empty() && !frame.module.empty()) name = fmt::format("{}+{:#x}", text::escape(frame.module), frame.offset);
    if (name.empty()) name = fmt::format("{:#x}", frame.address);
    std::replace(name.begin(), name.end(), ';', ':');
    return name;
}

class FoldedSink final : public output::Sink {
  public:
    FoldedSink(output::Writer &writer, output::Symbolizer *symbolizer) : writer_(writer), symbolizer_(symbolizer) {}

    void record(std::span<const std::byte>, const program::LocationInfo &) override {}
    void log(const program::RecordHeader &, std::uint32_t, std::string_view) override {}
    void summary(const program::LocationInfo &, const program::Counters &, const program::Table *) override {}

    void tables(const std::vector<output::FunctionTable> &functions, const output::TableLayout &,
                std::uint64_t interval) override {
        if (interval != 0) return; // that of the whole trace has them all
        std::map<std::string, double> stacks;
        for (const output::FunctionTable &function : functions)
            for (const program::Row &row : function.table.rows)
                if (std::string stack = stack_of({&function, &row}); !stack.empty())
                    stacks[stack] += function.table.kind == program::Table::Kind::stats
                                         ? row.stats.total
                                         : static_cast<double>(row.count);
        for (const auto &[stack, weight] : stacks) writer_.write(fmt::format("{} {:.0f}\n", stack, weight));
    }

  private:
    /// Empty: there is none in the key.
    std::string stack_of(const TableLine &line) const {
        std::string keys, frames;
        for (std::size_t i = 0; i < line.row->key.size(); i++) {
            const program::KeyPart &part = line.row->key[i];
            if (part.tag != Tag::stack) {
                keys += output::key_text(line, i, symbolizer_) + ';';
                continue;
            }
            for (const NamedFrame &frame :
                 output::name_frames(output::node_of(part), {nullptr, symbolizer_, line.row->pid}))
                frames = frame_text(frame) + (frames.empty() ? "" : ";") + frames;
        }
        return frames.empty() ? frames : keys + frames;
    }

    output::Writer &writer_;
    output::Symbolizer *symbolizer_;
};

} // namespace

std::unique_ptr<output::Sink> make_folded_sink(output::Writer &writer, output::Symbolizer *symbolizer) {
    return std::make_unique<FoldedSink>(writer, symbolizer);
}

} // namespace ktrace::exports
