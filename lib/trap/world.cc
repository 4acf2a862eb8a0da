#include "trap/world.h"

#include "program/program.h"

namespace ktrace::trap {

std::span<std::byte> RecordQueue::reserve() {
    if (buffer_.size() - used_ < program::max_record)
        buffer_.resize(std::max(buffer_.size() * 2, used_ + program::max_record));
    return std::span(buffer_).subspan(used_, program::max_record);
}

} // namespace ktrace::trap
