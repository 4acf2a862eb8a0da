#include "arming/planning.h"

#include "arming/leak_check.h"
#include "os/self/sigbus_guard.h"

namespace ktrace::arming {

namespace {

void note(trace::Trace &trace, Remarks remarks) {
    for (const std::string &notice : os::take_cut_file_notices()) trace::tell_once(trace, notice);
    for (const std::string &notice : remarks.notices) trace::tell_once(trace, notice);
    for (auto &[number, why] : remarks.nowhere) trace.registry.at(number).why_nowhere = std::move(why);
    for (std::uint32_t number : remarks.expected) trace.registry.at(number).expected = true;
    for (probe::ProbeSet *set : remarks.compiled) set->compiled = true;
}

} // namespace

Result<InstallPlan> make_plan(trace::Trace &trace, const engine::Process &process,
                              const std::vector<std::uint32_t> &probes, Missing missing) {
    Remarks remarks;
    auto made = plan(take_snapshot(trace, process), probes, missing, remarks);
    if (made)
        if (std::string notice = leak_check_notice(process.target); !notice.empty())
            remarks.notices.push_back(std::move(notice));
    note(trace, std::move(remarks));
    return made;
}

Result<InstallPlan> make_plan(trace::Trace &trace, const engine::Process &process,
                              std::vector<PlannedLocation> locations) {
    Remarks remarks;
    auto made = plan_locations(take_snapshot(trace, process), std::move(locations), remarks);
    note(trace, std::move(remarks));
    return made;
}

} // namespace ktrace::arming
