// Raw addresses: 0xADDRESS of a process, MODULE:0xVADDR of a file.
#include <algorithm>

#include "probe/resolve_parts.h"

namespace ktrace::probe {

namespace {

bool holds(const symbols::Module &module, std::uint64_t vaddr) {
    auto segments = module.segments();
    return std::any_of(segments.begin(), segments.end(), [vaddr](const symbols::Segment &s) {
        return vaddr >= s.vaddr && vaddr - s.vaddr < s.memory_size;
    });
}

/// A stub of a procedure linkage table is probed like a function of its own; no symbol and no frame has its extent.
void take_for_stub(Location &location) {
    constexpr std::uint64_t stub = 16; // bytes, on all ISAs traced
    location.function = location.vaddr & ~(stub - 1);
    location.function_end = location.function + stub;
}

Status add_place(const Request &request, const Loaded &loaded, std::uint64_t vaddr, Finding &finding) {
    const symbols::Module &module = *loaded.module;
    if (!module.executable(vaddr))
        return tl::unexpected(
            about_place(request, Error::Kind::refused,
                        hex(request.spec.address) + " is data of " + std::string(module.name()) + ", not code"));
    Location location = location_at(loaded, vaddr);
    if (module.in_plt(vaddr)) take_for_stub(location);
    if (auto status = check_entry(request, location); !status) return status;
    if (auto status = check_boundary(request, location); !status) return status;
    if (location.function == 0)
        finding.resolved().notices.push_back("no function is known at " + hex(request.spec.address) + " of " +
                                             std::string(module.name()) +
                                             ", so it is not checked that an instruction starts there");
    finding.add(std::move(location));
    return {};
}

/// Code that no file has: a JIT compiler's.
Result<Resolved> in_no_file(const Request &request) {
    VirtAddr at{request.spec.address};
    if (!request.memory)
        return tl::unexpected(
            about_place(request, Error::Kind::refused, hex(at.value) + " is in none of the files given"));
    if (!request.memory->read_value<std::uint8_t>(at))
        return tl::unexpected(about_place(request, Error::Kind::refused,
                                          hex(at.value) + " is not mapped in the process",
                                          "addresses differ from run to run; MODULE:0xVADDR does not"));
    Location location;
    location.vaddr = at.value;
    Finding finding;
    finding.add(std::move(location));
    return finding.take(request.modules);
}

} // namespace

Result<Resolved> resolve_address(const Request &request) {
    const Spec &spec = request.spec;
    bool in_process = spec.form == Spec::Form::address;
    Finding finding;
    for (const Loaded *loaded : request.chosen) {
        std::uint64_t vaddr = in_process ? spec.address - loaded->bias : spec.address;
        if (!holds(*loaded->module, vaddr)) continue;
        if (auto status = add_place(request, *loaded, vaddr, finding); !status) return tl::unexpected(status.error());
    }
    if (!finding.empty()) return finding.take(request.modules);
    if (in_process) return in_no_file(request);
    return tl::unexpected(
        about_place(request, Error::Kind::refused,
                    hex(spec.address) + " lies outside of " + std::string(request.chosen.front()->module->name()),
                    "MODULE:0xVADDR is an address as nm prints it"));
}

} // namespace ktrace::probe
