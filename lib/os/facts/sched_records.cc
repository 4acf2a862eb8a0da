#include "os/facts/sched_records.h"

#include <atomic>
#include <cstring>
#include <ctime>

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

namespace ktrace::os {

namespace {

constexpr std::size_t head_size = 4096;
constexpr std::size_t ring_size = head_size; // 256 records; a whole number of them, so none is in two parts
constexpr std::size_t record_unit = 16;      // a switch, and what the sizes of all records are multiples of
constexpr std::size_t largest = 64; // more than any record that is asked for: where less is free, one may be missing

std::size_t recorded = 0; // tasks, of the one tracing thread

/// A record of a switch: `perf_event_attr::sample_id_all` puts the time behind the header.
struct SwitchRecord {
    perf_event_header header;
    std::uint64_t time_ns;
};
static_assert(sizeof(SwitchRecord) == record_unit && ring_size % record_unit == 0);

perf_event_attr what_to_record() {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.sample_type = PERF_SAMPLE_TIME;
    attr.sample_id_all = 1;
    attr.context_switch = 1;
    attr.exclude_kernel = attr.exclude_hv = 1; // else it takes rights of its own
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    attr.watermark = 1; // nothing waits for the ring to fill
    attr.wakeup_watermark = ring_size;
    return attr;
}

perf_event_mmap_page &control(void *mapping) { return *static_cast<perf_event_mmap_page *>(mapping); }

std::uint64_t head(void *mapping) {
    return std::atomic_ref(control(mapping).data_head).load(std::memory_order_acquire);
}

} // namespace

void read_switches(std::span<const std::byte> ring, std::uint64_t from, std::uint64_t to, Presence &presence) {
    if (to - from + largest > ring.size()) presence.lost = true;
    while (from < to) {
        SwitchRecord record;
        std::memcpy(&record, ring.data() + from % ring.size(), sizeof record);
        const std::size_t size = record.header.size;
        if (size == 0 || size % record_unit != 0 || size > to - from) {
            presence.lost = true;
            return;
        }
        from += size;
        if (record.header.type == PERF_RECORD_LOST) {
            presence.lost = presence.lost || presence.came_ns != 0;
        } else if (record.header.type == PERF_RECORD_SWITCH) {
            const bool leaves = (record.header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
            presence.left_ns = leaves ? record.time_ns : 0;
            if (presence.came_ns == 0) {
                presence.lost = presence.lost || leaves;
                presence.came_ns = record.time_ns;
            }
        }
    }
}

bool SchedRecords::has_room() { return recorded < most; }

std::unique_ptr<SchedRecords> SchedRecords::open(Tid tid) {
    if (!has_room()) return nullptr;
    perf_event_attr attr = what_to_record();
    Fd event(static_cast<int>(::syscall(SYS_perf_event_open, &attr, tid.value, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event) return nullptr;
    void *mapping = ::mmap(nullptr, head_size + ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
    if (mapping == MAP_FAILED) return nullptr;
    return std::unique_ptr<SchedRecords>(new SchedRecords(mapping));
}

SchedRecords::SchedRecords(void *mapping) : mapping_(mapping) { recorded++; }

SchedRecords::~SchedRecords() {
    ::munmap(mapping_, head_size + ring_size);
    recorded--;
}

void SchedRecords::take(Presence &presence) {
    const std::uint64_t end = head(mapping_);
    if (end == read_) return;
    const auto *ring = static_cast<const std::byte *>(mapping_) + head_size;
    read_switches(std::span(ring, ring_size), read_, end, presence);
    read_ = end;
    std::atomic_ref(control(mapping_).data_tail).store(end, std::memory_order_release);
}

void SchedRecords::skip() {
    const std::uint64_t end = head(mapping_);
    if (end == read_) return;
    read_ = end;
    std::atomic_ref(control(mapping_).data_tail).store(end, std::memory_order_release);
}

} // namespace ktrace::os
