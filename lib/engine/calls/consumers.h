// Consumers: the attachments and internal breakpoints of a site, as they come and go while tasks run through it.
//
// Invariants: (1) a trap is planted as long as it is needed: by an attachment or internal breakpoint that is on, by the
// calls that return to it, by the calls that are seen to end at it, by the doubtful calls from it; (2) an attachment's
// place in Site::attachments does not change while a task is between the moments before and after an instruction there
// (Task::post counts places): an attachment that is dismissed in the meantime stays, silent, until `remove_from_site`.
#pragma once

#include <unordered_set>

#include "engine/space/engine.h"

namespace ktrace::engine {

/// True where the site's trap is needed.
bool is_needed(const Site &site);

/// Adds an attachment to a site, last in its order, switched off. The site is planted by its own `arm` or by switch_on.
void enlist(Site &site, Attachment &attachment);
void enlist(Site &site, InternalBreakpoint &breakpoint);

/// From now on the attachment's hits are seen. Errors: those of arm().
Status switch_on(AddressSpaceState &space, Site &site, Attachment &attachment);
Status switch_on(AddressSpaceState &space, Site &site, InternalBreakpoint &breakpoint);

/// From now on the attachment's hits are not seen; calls that have begun still end as calls. The trap comes out unless
/// it is needed still.
void switch_off(AddressSpaceState &space, Site &site, Attachment &attachment);
void switch_off(AddressSpaceState &space, Site &site, InternalBreakpoint &breakpoint);

/// The same where the site's memory is gone: only the counts change.
void count_out(AddressSpaceState &space, Attachment &attachment);

/// The attachment is switched off for good.
void dismiss(AddressSpaceState &space, Site &site, Attachment &attachment);

/// The calls in flight of all dismissed probes of the address space end as unreturned.
void end_calls_of_dismissed(Engine &engine, Process &process);

/// The sites at which tasks are in the middle of an instruction with a moment after it.
std::unordered_set<const Site *> sites_in_use(const Engine &engine);

/// Takes a dismissed probe off its site; `in_use`: of sites_in_use. False: a task still needs its place. After true
/// nothing in this room refers to it, if its calls have ended.
bool remove_from_site(Site &site, const Attachment &attachment, const std::unordered_set<const Site *> &in_use);

/// One of the calls from there is not doubtful any more (Site::doubtful).
void drop_doubt(AddressSpaceState &space, Site &site);

/// The trap stays for calls that return to there.
void keep_for_returns(AddressSpaceState &space, Site &site);
/// Takes out the traps of return sites without a call in flight. The next call from there puts its trap back.
void drop_idle_return_sites(AddressSpaceState &space);
/// The trap does not stay for them any longer.
void drop_return_site(AddressSpaceState &space, Site &site);

} // namespace ktrace::engine
