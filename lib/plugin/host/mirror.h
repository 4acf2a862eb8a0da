// Mirror: the target's pages in the host, each at its own address, brought in when a handler touches it.
//
// Invariants: (1) a page here shows what the target's memory held when it was brought in, with what the handler has
// written since; (2) no page is here between two Calls: the target runs on and changes them; (3) nothing in the window
// is ever replaced.
#pragma once

#include <cstdint>

namespace ktrace::plugin::host {

/// Brings in the page around an address, or makes it writable. False: the address is in the window, or the target could
/// not have accessed it either. Called by the signal handler of faults.
bool bring_in(std::uint64_t address, bool write);

/// Gives up all pages; ktrace takes what was written.
void give_up_pages();

} // namespace ktrace::plugin::host
