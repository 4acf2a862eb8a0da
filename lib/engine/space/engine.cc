#include "engine/space/engine.h"

#include "program/run/program.h"

namespace ktrace::engine {

std::span<std::byte> RecordQueue::reserve() {
    if (buffer_.size() - used_ < program::max_record)
        buffer_.resize(std::max(buffer_.size() * 2, used_ + program::max_record));
    return std::span(buffer_).subspan(used_, program::max_record);
}

} // namespace ktrace::engine
