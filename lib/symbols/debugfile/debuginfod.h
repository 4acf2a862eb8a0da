// debuginfod: the servers that DEBUGINFOD_URLS names (debuginfod(8)), asked for debug files that are not installed.
//
// Invariants: (1) waiting for a server has a bound, and the user can end it; (2) a server that has let us wait in vain
// is not asked again; (3) libdebuginfod, which brings in libcurl, is loaded when it is first asked.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "symbols/debugfile/debugfile.h"

namespace ktrace::symbols {

/// Whether a download goes on well enough to be waited for.
class Patience {
  public:
    /// Times are monotonic, in ns.
    explicit Patience(std::uint64_t now) : started_(now), moved_(now) {}

    /// Reports `amount`, which is what has come in so far or, while no server answers, libdebuginfod's count of the
    /// times that it has looked: neither little nor a creeping growth is progress.
    bool lasts(std::uint64_t now, std::uint64_t amount);

    static constexpr std::uint64_t longest_pause = 15'000'000'000; // ns without progress
    static constexpr std::uint64_t longest = 300'000'000'000;      // ns in all
    static constexpr std::uint64_t least = 4096;                   // growth that is progress

  private:
    std::uint64_t started_, moved_, amount_ = 0;
};

/// True where DEBUGINFOD_URLS names servers.
bool debuginfod_configured();

/// The judge of whether servers may be asked, and waited for, now: asked before each download and about every second of
/// one. Until it is set they may.
void set_download_permission(std::function<bool()> may_download);

/// Asks the servers for the debug file of a build-id, which may take seconds. Without one `why_not` says why.
DebugFile fetch_debug_file(std::span<const std::byte> build_id, std::string &why_not);

} // namespace ktrace::symbols
