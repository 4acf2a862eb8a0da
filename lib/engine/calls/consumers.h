// Consumers: the attachments and internal breakpoints of a site, as they come and go while tasks run through it.
//
// Invariants: (1) a trap is planted as long as it is needed: by an attachment or internal breakpoint that is on, by the
// calls that return to there, by the calls that are seen to end there, by the calls from there that are in doubt; (2)
// an attachment's place in Site::attachments does not change while a task is between the moments before and after an
// instruction there (Task::post counts places): one that is dismissed in the meantime stays, silent, until
// `remove_from_site`.
#pragma once

#include <unordered_set>

#include "engine/space/engine.h"

namespace ktrace::engine {

/// Is its trap needed?
bool is_needed(const Site &site);

/// It joins a site, last in its order, switched off. The site is planted by its own `arm` or by switch_on.
void enlist(Site &site, Attachment &attachment);
void enlist(Site &site, InternalBreakpoint &breakpoint);

/// Its hits are seen from now on. Errors: those of arm().
Status switch_on(AddressSpaceState &space, Site &site, Attachment &attachment);
Status switch_on(AddressSpaceState &space, Site &site, InternalBreakpoint &breakpoint);

/// Its hits are not seen any more, calls that have begun still end as such; the trap comes out where nobody else needs
/// it.
void switch_off(AddressSpaceState &space, Site &site, Attachment &attachment);
void switch_off(AddressSpaceState &space, Site &site, InternalBreakpoint &breakpoint);

/// The same where the site's memory is gone: the books only.
void count_out(AddressSpaceState &space, Attachment &attachment);

/// It is switched off for good.
void dismiss(AddressSpaceState &space, Site &site, Attachment &attachment);

/// The calls in flight of all dismissed probes of the address space end as unreturned.
void end_calls_of_dismissed(Engine &engine, Process &process);

/// The sites at which tasks are in the middle of an instruction that has a moment after it.
std::unordered_set<const Site *> sites_in_use(const Engine &engine);

/// Takes a dismissed probe off its site; `in_use`: of sites_in_use. False: a task still counts on its place. After true
/// nothing in this room refers to it, if its calls have ended.
bool remove_from_site(Site &site, const Attachment &attachment, const std::unordered_set<const Site *> &in_use);

/// No longer in doubt is one of the calls from there (Site::doubtful).
void drop_doubt(AddressSpaceState &space, Site &site);

/// The trap stays for calls that return to there.
void keep_for_returns(AddressSpaceState &space, Site &site);
/// Those of callers whose calls have all ended come out. Return probes that are left put them back themselves, with
/// their next call from there.
void drop_idle_return_sites(AddressSpaceState &space);
/// It does not stay for them any longer.
void drop_return_site(AddressSpaceState &space, Site &site);

} // namespace ktrace::engine
