#include "arming/leak_check.h"

#include <algorithm>

#include "base/text.h"
#include "os/proc/procfs.h"

namespace ktrace::arming {

bool turns_leak_check_off(std::string_view options) {
    constexpr std::string_view name = "detect_leaks=";
    bool off = false; // the last one counts
    for (std::size_t at = options.find(name); at != std::string_view::npos; at = options.find(name, at + 1)) {
        const std::string_view value = options.substr(at + name.size());
        off = value.starts_with("0") || value.starts_with("f") || value.starts_with("n");
    }
    return off;
}

namespace {

bool has_leak_check(const target::Process &process) {
    return std::any_of(process.modules.begin(), process.modules.end(), [](const target::LoadedModule &loaded) {
        return !loaded.module->named("__lsan_init").empty() || !loaded.module->named("__asan_init").empty();
    });
}

} // namespace

std::string leak_check_notice(const target::Process &process) {
    if (!has_leak_check(process)) return {};
    std::string options;
    const std::string environment =
        os::read_file("/proc/" + std::to_string(process.pid.value) + "/environ").value_or("");
    for (std::size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
        const char *variable = environment.c_str() + at;
        for (std::string_view name : {"ASAN_OPTIONS=", "LSAN_OPTIONS="})
            if (std::string_view(variable).starts_with(name)) options += variable;
        if (environment.find('\0', at) == std::string::npos) break;
    }
    if (turns_leak_check_off(options)) return {};
    return text::escape(process.comm) +
           " looks for leaks when it ends (LeakSanitizer), which fails while it is traced: " +
           "run it with ASAN_OPTIONS=detect_leaks=0";
}

} // namespace ktrace::arming
