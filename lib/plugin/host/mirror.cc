#include "plugin/host/mirror.h"

#include <sys/mman.h>

#include "plugin/host/turns.h"

namespace ktrace::plugin::host {

namespace {

constexpr std::size_t table_size = pool_pages * 4; // a power of two

struct Page {
    std::uint64_t address;
    std::uint32_t number;
    bool writable;
};

Page pages[pool_pages];
std::size_t page_count = 0;
std::uint32_t table[table_size]; // index in `pages` + 1, by address; open addressing

std::size_t slot_of(std::uint64_t page) {
    std::size_t slot = static_cast<std::size_t>(page / page_size * 0x9e3779b97f4a7c15U >> 40) & (table_size - 1);
    while (table[slot] != 0 && pages[table[slot] - 1].address != page) slot = (slot + 1) & (table_size - 1);
    return slot;
}

bool map_page(std::uint64_t page, std::uint32_t number) {
    auto offset = static_cast<off_t>(pool_offset + std::size_t{number} * page_size);
    return ::mmap(reinterpret_cast<void *>(page), page_size, PROT_READ, MAP_SHARED | MAP_FIXED, wire_fd, offset) !=
           MAP_FAILED;
}

bool make_writable(Page &page) {
    wire->address = page.address;
    if (ask(Request::write_page) != 0) return false;
    page.writable = true;
    return ::mprotect(reinterpret_cast<void *>(page.address), page_size, PROT_READ | PROT_WRITE) == 0;
}

Page *fetch(std::uint64_t address) {
    if (page_count == pool_pages) {
        ask(Request::clear);
        give_up_pages();
    }
    wire->address = address;
    std::int64_t number = ask(Request::page);
    if (number < 0 || !map_page(address, static_cast<std::uint32_t>(number))) return nullptr;
    Page &page = pages[page_count];
    page = {address, static_cast<std::uint32_t>(number), false};
    table[slot_of(address)] = static_cast<std::uint32_t>(++page_count);
    return &page;
}

} // namespace

bool bring_in(std::uint64_t address, bool write) {
    if (window.contains(address)) return false;
    std::uint64_t at = address / page_size * page_size;
    std::uint32_t known = table[slot_of(at)];
    if (known == 0) {
        Page *page = fetch(at);
        return page && (!write || make_writable(*page));
    }
    Page &page = pages[known - 1];
    return write && !page.writable && make_writable(page);
}

void give_up_pages() {
    for (std::size_t i = 0; i < page_count; i++) {
        table[slot_of(pages[i].address)] = 0;
        ::mmap(reinterpret_cast<void *>(pages[i].address), page_size, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    page_count = 0;
}

} // namespace ktrace::plugin::host
