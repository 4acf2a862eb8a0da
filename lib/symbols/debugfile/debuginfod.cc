#include "symbols/debugfile/debuginfod.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <elfutils/debuginfod.h>

#include <dlfcn.h>

#include "base/clock.h"

namespace ktrace::symbols {

bool Patience::lasts(std::uint64_t now, std::uint64_t amount) {
    if (amount < amount_) amount_ = amount; // another server, or the first one again
    if (amount - amount_ >= least) {
        amount_ = amount;
        moved_ = now;
    }
    return now - moved_ < longest_pause && now - started_ < longest;
}

namespace {

std::function<bool()> &permission() {
    static std::function<bool()> may_download;
    return may_download;
}

bool is_permitted() { return !permission() || permission()(); }

/// libdebuginfod, loaded when it is needed and kept until the end.
struct Debuginfod {
    decltype(&::debuginfod_begin) begin = nullptr;
    decltype(&::debuginfod_end) end = nullptr;
    decltype(&::debuginfod_find_debuginfo) find = nullptr;
    decltype(&::debuginfod_set_progressfn) set_progress = nullptr;
    decltype(&::debuginfod_set_user_data) set_data = nullptr;
    decltype(&::debuginfod_get_user_data) data = nullptr;

    Debuginfod() {
        void *library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library) return;
        auto get = [library](auto &function, const char *name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
        };
        get(begin, "debuginfod_begin");
        get(end, "debuginfod_end");
        get(find, "debuginfod_find_debuginfo");
        get(set_progress, "debuginfod_set_progressfn");
        get(set_data, "debuginfod_set_user_data");
        get(data, "debuginfod_get_user_data");
    }
    bool complete() const { return begin && end && find && set_progress && set_data && data; }
};

const Debuginfod &debuginfod() {
    static const Debuginfod library;
    return library;
}

struct Download {
    Patience patience;
    bool in_vain = false; // patience has ended
    bool stopped = false; // it is not permitted any more
};

int look_at_download(debuginfod_client *client, long amount, long /*of*/) {
    auto &download = *static_cast<Download *>(debuginfod().data(client));
    download.stopped = !is_permitted();
    download.in_vain = !download.patience.lasts(monotonic_ns(), static_cast<std::uint64_t>(std::max(amount, 0L)));
    return download.stopped || download.in_vain ? 1 : 0; // 1 ends the call
}

bool &is_silent() {
    static bool silent = false;
    return silent;
}

/// Why no server may be asked now; nullptr: one may be.
const char *reason_not_to_ask() {
    if (is_silent()) return "debuginfod does not answer";
    if (!is_permitted()) return "debuginfod is not asked while probes are armed, since a thread may wait at one";
    if (!debuginfod().complete()) return "DEBUGINFOD_URLS is set, but libdebuginfod cannot be loaded";
    return nullptr;
}

std::string reason_of(const Download &download, int error) {
    if (download.stopped) return "the download from debuginfod was interrupted";
    if (download.in_vain) return "debuginfod does not answer";
    return std::string("debuginfod has none: ") + std::strerror(error);
}

} // namespace

bool debuginfod_configured() {
    const char *urls = std::getenv("DEBUGINFOD_URLS");
    return urls && *urls != '\0';
}

void set_download_permission(std::function<bool()> may_download) { permission() = std::move(may_download); }

DebugFile fetch_debug_file(std::span<const std::byte> build_id, std::string &why_not) {
    if (const char *reason = reason_not_to_ask()) {
        why_not = reason;
        return {};
    }
    const Debuginfod &library = debuginfod();
    debuginfod_client *client = library.begin();
    if (!client) {
        why_not = "libdebuginfod cannot start";
        return {};
    }
    Download download{Patience(monotonic_ns())};
    library.set_data(client, &download);
    library.set_progress(client, look_at_download);
    char *path = nullptr;
    int fd = library.find(client, reinterpret_cast<const unsigned char *>(build_id.data()),
                          static_cast<int>(build_id.size()), &path);
    library.end(client);
    std::string shown = path ? path : "debuginfod's file";
    std::free(path);
    is_silent() = download.in_vain;
    if (fd < 0) {
        why_not = reason_of(download, -fd);
        return {};
    }
    DebugFile found{parse_debug_file(Fd(fd), shown), shown};
    if (!found.elf) why_not = "debuginfod's answer (" + shown + ") is not a debug file";
    return found;
}

} // namespace ktrace::symbols
