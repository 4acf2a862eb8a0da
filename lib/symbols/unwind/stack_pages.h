// StackPages: the target's memory while one stack is unwound: read by pages, each once, since a read of the target
// costs nearly the same for 4 KiB as for 8 bytes.
//
// Invariants: nothing is kept from one stack to the next; a page that can be read only in part is as long as that part.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/memory.h"

namespace ktrace::symbols {

class StackPages final : public Memory {
  public:
    /// A new stack begins, in `memory`, which must live until the last read of it.
    void begin(Memory &memory) {
        memory_ = &memory;
        for (Page &page : pages_) page.used = false;
    }

    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        std::size_t done = 0;
        while (done < into.size()) {
            std::uint64_t from = at.value + done;
            const Page &page = page_of(from / page_size);
            std::size_t offset = from % page_size;
            if (offset >= page.size) break;
            std::size_t count = std::min(into.size() - done, page.size - offset);
            std::memcpy(into.data() + done, page.bytes.data() + offset, count);
            done += count;
            if (page.size < page_size) break;
        }
        return done;
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }

  private:
    static constexpr std::uint64_t page_size = 4096;
    struct Page {
        bool used = false;
        std::uint64_t number = 0;
        std::size_t size = 0; // bytes that are readable, from its front
        std::array<std::byte, page_size> bytes;
    };

    const Page &page_of(std::uint64_t number) {
        Page &page = pages_[number % pages_.size()];
        if (page.used && page.number == number) return page;
        page.used = true;
        page.number = number;
        page.size = memory_->read(VirtAddr{number * page_size}, page.bytes);
        return page;
    }

    Memory *memory_ = nullptr;
    std::array<Page, 16> pages_;
};

} // namespace ktrace::symbols
