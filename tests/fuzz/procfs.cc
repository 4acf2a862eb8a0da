// Any text as the contents of /proc.
#include "os/proc/procfs.h"
#include "fuzz.h"
#include "os/facts/freezer.h"

using namespace ktrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    std::string_view text = fuzz::text(data, size);
    os::parse_maps(text);
    const std::size_t half = text.size() / 2;
    os::parse_freezers(text.substr(0, half), text.substr(half));
    os::parse_status(text);
    os::parse_task_place(text);
    os::parse_task_stat(text);
    return 0;
}
