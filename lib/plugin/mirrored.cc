#include "plugin/mirrored.h"

#include <algorithm>
#include <span>

namespace ktrace::plugin {

namespace {

bool may_write(target::Process &process, VirtAddr at) {
    auto allows = [&] {
        return std::any_of(process.maps.begin(), process.maps.end(),
                           [&](const os::Mapping &map) { return map.contains(at) && map.writable; });
    };
    if (allows()) return true;
    auto maps = os::read_maps(process.pid);
    if (!maps) return false;
    process.maps = std::move(*maps);
    return allows();
}

} // namespace

std::optional<std::size_t> Mirrored::bring(target::Process &process, VirtAddr address) {
    if (auto known = numbers_.find(address); known != numbers_.end()) return known->second;
    std::size_t number = pages_.size();
    if (number == pool_pages) return std::nullopt;
    if (process.space->read(address, std::span(channel_.page(number), page_size)) != page_size) return std::nullopt;
    pages_.push_back({address, {}});
    numbers_[address] = number;
    return number;
}

bool Mirrored::allow_writing(target::Process &process, VirtAddr address) {
    auto known = numbers_.find(address);
    if (known == numbers_.end() || !may_write(process, address)) return false;
    const std::byte *now = channel_.page(known->second);
    pages_[known->second].before.assign(now, now + page_size);
    return true;
}

void Mirrored::write_back(target::Process &process) {
    for (std::size_t number = 0; number < pages_.size(); number++) {
        const Page &page = pages_[number];
        if (page.before.empty()) continue;
        std::span<const std::byte> now(channel_.page(number), page_size);
        for (std::size_t at = 0; at < page_size;) {
            if (now[at] == page.before[at]) {
                at++;
                continue;
            }
            std::size_t end = at;
            while (end < page_size && now[end] != page.before[end]) end++;
            process.space->write(page.address + static_cast<std::int64_t>(at), now.subspan(at, end - at));
            at = end;
        }
    }
    forget();
}

void Mirrored::forget() {
    pages_.clear();
    numbers_.clear();
}

} // namespace ktrace::plugin
