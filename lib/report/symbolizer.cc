#include "report/symbolizer.h"

#include <algorithm>
#include <unordered_map>

#include "report/perf_map.h"
#include "report/records.h"
#include "symbols/dwarf/dwarf.h"

namespace ktrace::report {

namespace {

using output::NamedFrame;
using target::LoadedModule;

/// Where a name is looked up: an address of a module, by that of the instruction that is executed there.
struct Place {
    const symbols::Module *module = nullptr;
    std::uint64_t vaddr = 0;
    bool operator==(const Place &) const = default;
};

struct PlaceHash {
    std::size_t operator()(const Place &place) const {
        return std::hash<const void *>{}(place.module) ^ std::hash<std::uint64_t>{}(place.vaddr * 0x9e3779b97f4a7c15U);
    }
};

/// The frames at a place, the inlined ones first. Their addresses and offsets are those of the place.
std::vector<NamedFrame> look_up(const symbols::Module &module, std::uint64_t vaddr) {
    NamedFrame function;
    function.address = vaddr;
    function.module = std::string(module.name());
    if (const symbols::Symbol *symbol = module.covering(vaddr)) {
        function.symbol = std::string(module.demangled(*symbol, false));
        function.offset = vaddr - symbol->vaddr;
    }
    std::vector<NamedFrame> frames;
    // A server is not asked: there may be a stack with twenty libraries, while the target waits.
    if (symbols::Dwarf *dwarf = module.dwarf(symbols::DebugSource::local)) {
        for (symbols::SourceFrame &source : dwarf->frames_at(vaddr)) {
            NamedFrame frame = function;
            frame.file = std::move(source.file);
            frame.line = source.line;
            frame.inlined = source.inlined;
            if (source.inlined) frame.offset = 0;
            if (source.inlined || frame.symbol.empty()) frame.symbol = std::move(source.function);
            frames.push_back(std::move(frame));
        }
    }
    if (frames.empty()) frames.push_back(std::move(function));
    return frames;
}

class ModuleSymbolizer final : public output::Symbolizer {
  public:
    explicit ModuleSymbolizer(const trace::Trace &trace) : trace_(trace) {}

    std::vector<NamedFrame> name(std::int32_t pid, std::uint64_t address, bool is_return_address) override {
        std::uint64_t behind = is_return_address && address != 0 ? 1 : 0;
        const LoadedModule *loaded = module_of(pid, VirtAddr{address - behind});
        if (!loaded) {
            return {generated(Pid{pid}, address, behind)};
        }
        std::vector<NamedFrame> frames = known(*loaded, address - behind - loaded->bias);
        for (NamedFrame &frame : frames) {
            frame.address = address;
            if (frame.symbol.empty())
                frame.offset = address - loaded->bias;
            else if (!frame.inlined)
                frame.offset += behind;
        }
        return frames;
    }

  private:
    static constexpr std::size_t most_known = 65536;

    /// Of code that no file has: by what the program says of it.
    NamedFrame generated(Pid pid, std::uint64_t address, std::uint64_t behind) {
        NamedFrame frame;
        frame.address = address;
        PerfMap &map = perf_maps_[pid.value];
        const PerfMap::Function *function = map.at(address - behind);
        if (!function) {
            map.read(pid);
            function = map.at(address - behind);
        }
        if (!function) return frame;
        frame.symbol = function->name;
        frame.offset = address - function->start;
        return frame;
    }

    const LoadedModule *module_of(std::int32_t pid, VirtAddr at) const {
        auto process = trace_.engine.processes.find(pid);
        if (process != trace_.engine.processes.end())
            if (const LoadedModule *now = target::module_at(process->second->target.modules, at)) return now;
        auto former = trace_.output.former_modules.find(pid);
        return former == trace_.output.former_modules.end() ? nullptr : target::module_at(former->second, at);
    }

    const std::vector<NamedFrame> &known(const LoadedModule &loaded, std::uint64_t vaddr) {
        if (known_.size() >= most_known) known_.clear();
        auto [entry, is_new] = known_.try_emplace({loaded.module.get(), vaddr});
        if (is_new) entry->second = {loaded.module, look_up(*loaded.module, vaddr)};
        return entry->second.frames;
    }

    struct Known {
        std::shared_ptr<const symbols::Module> module; // as long as its address is a key
        std::vector<NamedFrame> frames;
    };
    const trace::Trace &trace_;
    std::unordered_map<Place, Known, PlaceHash> known_;
    std::unordered_map<pid_t, PerfMap> perf_maps_;
};

/// True where a table has keys that are named by this process's modules.
bool names_keys(const trace::Trace &trace, Pid pid) {
    return std::any_of(trace.installed.locations.begin(), trace.installed.locations.end(),
                       [&](const auto &location) { return location->state->aggregation.has_rows_of(pid.value); });
}

} // namespace

std::unique_ptr<output::Symbolizer> make_symbolizer(const trace::Trace &trace) {
    return std::make_unique<ModuleSymbolizer>(trace);
}

void part_with_modules(trace::Trace &trace, const engine::Process &process) {
    if (trace.engine.records.size() != 0) report_records(trace, false);
    if (!names_keys(trace, process.target.pid)) return;
    std::vector<LoadedModule> &former = trace.output.former_modules[process.target.pid.value];
    for (const LoadedModule &module : process.target.modules) {
        auto same = [&](const LoadedModule &other) {
            return other.module == module.module && other.bias == module.bias;
        };
        if (std::none_of(former.begin(), former.end(), same)) former.push_back(module);
    }
}

} // namespace ktrace::report
