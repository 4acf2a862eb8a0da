// Any text as what /proc tells.
#include "os/procfs.h"
#include "fuzz.h"

using namespace ktrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    std::string_view text = fuzz::text(data, size);
    os::parse_maps(text);
    os::parse_status(text);
    os::parse_task_place(text);
    return 0;
}
