#include "upgrade/planner.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include "agent/blob.h"
#include "agent/layout.h"
#include "arch/host.h"
#include "base/check.h"
#include "engine/space/slots.h"
#include "recovery/remains.h"
#include "target/modules.h"
#include "upgrade/countable.h"

namespace ktrace::upgrade {

using arch::HostDetour;
using arch::NoJump;
using engine::Jump;
using engine::JumpArea;
using engine::Refusal;

namespace {

constexpr std::size_t stub_room = 192; // bytes of a stub, at most and aligned
constexpr std::size_t name_room = 64;
constexpr std::size_t least_capacity = 256;      // of an area: probes that are added later find room in it
constexpr std::size_t least_with_calls = 2048;   // where calls return to gets jumps later
constexpr std::uint64_t spare_for_images = 8192; // of probes that are added later
constexpr std::uint64_t page_size = jump::page_size;
constexpr std::size_t most_mappings = 4096; // runs of pages with landings, before these are put together
constexpr std::uint64_t anywhere = ~std::uint64_t{0};
constexpr std::uint64_t widest_gap = 32 << 20;
constexpr std::int64_t longest_function = 1 << 20; // bytes

std::uint64_t whole_pages(std::uint64_t size) { return (size + page_size - 1) & ~(page_size - 1); }

/// So that what lies behind is where the agent's code may have it.
std::uint64_t aligned(std::uint64_t size) { return (size + 63) & ~std::uint64_t{63}; }

jump::Mapped::Grows growth_of(const os::Mapping &mapping) {
    if (mapping.path == "[heap]") return jump::Mapped::Grows::up;
    return mapping.path == "[stack]" ? jump::Mapped::Grows::down : jump::Mapped::Grows::no;
}

std::vector<jump::Free> free_in(const std::vector<os::Mapping> &maps) {
    std::vector<jump::Mapped> mapped;
    for (const os::Mapping &each : maps)
        if (each.path != "[vsyscall]") mapped.push_back({each.start, each.end, growth_of(each)});
    return jump::free_ranges(mapped, {});
}

/// Behind the last byte of what may be padding of a function's.
VirtAddr padding_end(const target::LoadedModule &loaded, std::uint64_t function_end) {
    const auto symbols = loaded.module->symbols();
    const auto next = std::ranges::lower_bound(symbols, function_end, {}, &symbols::Symbol::vaddr);
    return VirtAddr{(next == symbols.end() ? function_end : next->vaddr) + loaded.bias};
}

bool has_shadow_stack(Pid pid) {
    if (arch::HostNative::may_have_shadow_stacks()) return true;
    const auto status = os::read_file("/proc/" + std::to_string(pid.value) + "/status");
    const std::size_t at = status ? status->find("x86_Thread_features:") : std::string::npos;
    return at != std::string::npos &&
           status->substr(at, status->find('\n', at) - at).find("shstk") != std::string::npos;
}

/// Of a process: those with `bt` among the flags of their mapping (proc(5), smaps).
std::vector<Extent> guarded_pages(Pid pid) {
    std::vector<Extent> guarded;
    std::istringstream lines(os::read_file("/proc/" + std::to_string(pid.value) + "/smaps").value_or(""));
    Extent mapping;
    for (std::string line; std::getline(lines, line);) {
        std::uint64_t start = 0, end = 0;
        if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2)
            mapping = {VirtAddr{start}, VirtAddr{end}};
        else if (line.starts_with("VmFlags:") && (line + ' ').find(" bt ") != std::string::npos)
            guarded.push_back(mapping);
    }
    return guarded;
}

/// Of an image in a JumpArea.
std::uint64_t room_of(const program::Program &program) {
    if (program.is_empty()) return 0;
    const std::uint64_t size = program.image().bytes().size();
    return (size + program::image_alignment - 1) & ~std::uint64_t{program::image_alignment - 1};
}

/// Of the next stub.
std::size_t index_in(const JumpArea &area) { return static_cast<std::size_t>(area.next - area.stubs) / stub_room; }

std::size_t counters_of(const Jump &jump) { return jump.has_runs() ? 2 : 1; }

bool is_as(const engine::AgentRun &one, const engine::AgentRun &other) {
    return one.moment == other.moment && one.inside == other.inside && !(one.program < other.program) &&
           !(other.program < one.program);
}

/// One behind a prefix: while a trap is there, and none before it, the instruction is none.
bool has_boundary_in_instruction(const arch::Window &window) {
    return std::ranges::any_of(window.inner, [&](const arch::Boundary &each) {
        return !each.stays && std::ranges::find(window.starts, each.offset) == window.starts.end();
    });
}

} // namespace

Planner::Planner(engine::Process &process, std::vector<VirtAddr> wanted)
    : process_(process), space_(*process.space), wanted_(std::move(wanted)), maps_(process.target.maps),
      landings_(free_in(maps_), HostDetour::jump_size, most_mappings),
      has_shadow_stack_(has_shadow_stack(process.target.pid)) {
    for (const auto &[at, site] : space_.sites)
        if (is_in_the_way(*site)) sites_.push_back(at);
    std::ranges::sort(sites_);
    for (const auto &[landing, jump] : space_.jumps->by_landing) landings_.keep(landing); // of code that is gone, too
    std::erase_if(space_.jumps->areas, [](const JumpArea &each) { return !each.is_mapped(); }); // of a plan that failed
    if (!space_.threads) space_.jumps->threads_at = {};
    std::set<program::Program> programs;
    for (VirtAddr at : wanted_) {
        const auto runs = runs_of(*space_.sites.at(at));
        needs_agent_ = needs_agent_ || !runs.empty();
        if (!runs.empty()) more_runs_ += runs.size() - 1;
        for (const engine::AgentRun &run : runs) {
            follows_calls_ = follows_calls_ || run.moment == program::Moment::call;
            if (programs.insert(run.program).second) images_size_ += room_of(run.program);
        }
    }
}

bool Planner::plan_next() {
    if (next_ == wanted_.size()) return false;
    const VirtAddr at = wanted_[next_++];
    if (const Outcome refused = plan(at)) space_.jumps->refused[at] = *refused;
    return true;
}

bool Planner::is_guarded(VirtAddr at, std::span<const std::byte> code) {
    if (!arch::HostNative::guards_pages() || !HostDetour::is_landing_pad(code)) return false;
    if (!guarded_) guarded_ = guarded_pages(process_.target.pid);
    return std::ranges::any_of(*guarded_, [at](const Extent &each) { return each.start <= at && at < each.end; });
}

const std::vector<VirtAddr> &Planner::targets_of(const target::LoadedModule &loaded, symbols::Module::Extent function) {
    const VirtAddr start{function.start + loaded.bias};
    auto [found, is_new] = targets_.try_emplace(start);
    if (is_new) {
        std::vector<std::byte> code(function.end - function.start);
        code.resize(space_.memory->read(start, code));
        found->second = HostDetour::targets(code, start);
    }
    return found->second;
}

tl::expected<arch::Window, NoJump> Planner::window_of(VirtAddr at, const target::LoadedModule &loaded,
                                                      std::span<const std::byte> code) {
    const std::uint64_t vaddr = at.value - loaded.bias;
    const auto function = loaded.module->function_at(vaddr);
    if (!function || function->end - function->start > longest_function) return tl::unexpected(NoJump::function_ends);
    if (loaded.module->in_sequence(vaddr, HostDetour::longest_window))
        return tl::unexpected(NoJump::restartable_sequence);
    return HostDetour::window({at, code, VirtAddr{function->end + loaded.bias}, padding_end(loaded, function->end),
                               targets_of(loaded, *function), sites_, has_shadow_stack_, is_guarded(at, code)});
}

Planner::Outcome Planner::plan(VirtAddr at) {
    const target::LoadedModule *loaded = target::module_at(process_.target.modules, at);
    if (!loaded || loaded->module->is_vdso()) return Refusal{{}, "its code is in no file"};
    auto [go, is_new] = is_go_.try_emplace(loaded->module.get());
    if (is_new) go->second = !loaded->module->named("runtime.copystack").empty();
    if (go->second) return Refusal{{}, "Go moves its stacks"};
    if (!arch::HostNative::can_jump()) return Refusal{NoJump::not_built};
    std::array<std::byte, HostDetour::longest_window> room{};
    const auto code = std::span(room).first(space_.memory->read(at, room));
    auto window = window_of(at, *loaded, code);
    auto runs = runs_of(*space_.sites.at(at));
    auto &known = space_.jumps->at[at];
    const bool is_same = known && known->is_written && window && known->window.length == window->length &&
                         std::equal(known->code.begin(), known->code.end(), code.begin()) &&
                         std::ranges::equal(known->runs, runs, is_as);
    if (known && known->is_written && !is_same) space_.jumps->former.push_back(std::move(known));
    if (!known) known = std::make_unique<Jump>();
    Jump &jump = *known;
    jump.state = Jump::State::lifted;
    if (!window) return Refusal{window.error()};
    if (has_boundary_in_instruction(*window)) return Refusal{{}, "an instruction with a lock prefix is there"};
    jump.at = at;
    jump.window = std::move(*window);
    jump.code.assign(code.begin(), code.begin() + jump.window.length);
    if (!is_same) {
        jump.runs = std::move(runs);
        if (const Outcome refused = lay_out(jump, jump.code)) return refused;
    }
    jump.state = Jump::State::prepared;
    jumps_.push_back(&jump);
    return std::nullopt;
}

Planner::Outcome Planner::lay_out(Jump &jump, std::span<const std::byte> code) {
    const auto rule =
        HostDetour::landing_rule(jump.window, jump.at, {HostDetour::trap_byte(), HostDetour::trap_byte()});
    JumpArea *area = area_for(jump);
    const auto landing = !area                       ? std::nullopt
                         : HostDetour::lands_in_stub ? std::optional(area->next)
                                                     : take_landing(rule);
    if (!landing) return Refusal{NoJump::no_room};
    const VirtAddr counter =
        area->block->address + static_cast<std::int64_t>(area->block->used * sizeof(std::uint64_t));
    for (engine::AgentRun &run : jump.runs) place(run, *area);
    auto stub = jump.has_runs()
                    ? HostDetour::agent_stub(jump.window, code, jump.at, area->next, jump.runs.front().site_code)
                    : HostDetour::counting_stub(jump.window, code, jump.at, area->next, counter);
    auto bytes = HostDetour::jump(jump.at, *landing);
    if (!stub || !bytes || !HostDetour::jump(*landing, area->next) || stub->bytes.size() > stub_room) {
        if (!HostDetour::lands_in_stub) landings_.give_back(*landing);
        return Refusal{stub ? NoJump::no_room : stub.error()};
    }
    jump.landing = *landing;
    jump.stub_at = area->next;
    jump.stub = std::move(*stub);
    jump.bytes = std::move(*bytes);
    jump.block = area->block;
    jump.index = index_in(*area);
    jump.counter = area->block->used;
    area->block->used += counters_of(jump);
    for (std::size_t i = 0; i < jump.runs.size(); i++) {
        jump.runs[i].number = static_cast<std::uint32_t>(space_.jumps->by_number.size());
        space_.jumps->by_number.push_back({&jump, i});
    }
    jump.is_written = false;
    area->next = area->next + static_cast<std::int64_t>(stub_room);
    return std::nullopt;
}

std::optional<VirtAddr> Planner::take_landing(const arch::LandingRule &rule) {
    const auto landing = landings_.take(rule);
    if (!landing) return std::nullopt;
    const VirtAddr page{landing->value & ~(page_size - 1)};
    const VirtAddr end = page + static_cast<std::int64_t>(page_size);
    if (!space_.slots.contains(page) && landing_pages_.insert(page).second) note_taken(page, end);
    return landing;
}

void Planner::note_taken(VirtAddr start, VirtAddr end) {
    os::Mapping taken;
    taken.start = start;
    taken.end = end;
    maps_.insert(std::ranges::upper_bound(maps_, start, {}, &os::Mapping::start), taken);
}

/// Its places: the image of an equal program is there once.
void Planner::place(engine::AgentRun &run, JumpArea &area) {
    run.site_code = area.site_codes + static_cast<std::int64_t>(area.site_codes_used++ * sizeof(agent::SiteCode));
    const auto [known, is_new] = area.image_at.try_emplace(run.program, area.next_image);
    if (is_new) area.next_image = area.next_image + static_cast<std::int64_t>(room_of(run.program));
    run.image = known->second;
}

bool Planner::has_room(const JumpArea &area, const Jump &jump) {
    if (index_in(area) >= area.capacity) return false;
    if (!jump.has_runs()) return true;
    std::uint64_t images = 0;
    for (const engine::AgentRun &run : jump.runs) images += room_of(run.program);
    return area.has_agent() && area.site_codes_used + jump.runs.size() <= area.site_codes_room &&
           area.next_image + static_cast<std::int64_t>(images) <= area.counters;
}

JumpArea *Planner::area_for(const Jump &jump) {
    const VirtAddr at = jump.at;
    auto found = [&]() -> JumpArea * {
        for (JumpArea &area : space_.jumps->areas) {
            const std::uint64_t low = std::min(area.start.value, at.value),
                                high = std::max(area.counters.value, at.value);
            if (has_room(area, jump) && high - low < arch::Host::reach) return &area;
        }
        return nullptr;
    };
    if (JumpArea *area = found()) return area;
    return add_area(at) && (!jump.has_runs() || space_.threads || add_threads(at)) ? found() : nullptr;
}

/// The memory that the agent's threads find what is theirs in.
bool Planner::add_threads(VirtAddr at) {
    if (space_.jumps->threads_at.value != 0) return true;
    const target::LoadedModule *loaded = target::module_at(process_.target.modules, at);
    const auto place = engine::place_arena(maps_, loaded->start, loaded->end, engine::AgentThreads::size, anywhere);
    if (!place) return false;
    space_.jumps->threads_at = *place;
    const VirtAddr end = *place + static_cast<std::int64_t>(engine::AgentThreads::size);
    note_taken(*place, end);
    landings_.exclude(*place, end);
    return true;
}

bool Planner::add_area(VirtAddr at) {
    const target::LoadedModule *loaded = target::module_at(process_.target.modules, at);
    const std::size_t left = wanted_.size() - next_ + 1;
    const std::size_t least = follows_calls_ ? least_with_calls : least_capacity;
    JumpArea area;
    area.capacity = std::clamp(left, least, engine::CounterBlock::capacity / 2);
    const std::uint64_t records = aligned(area.capacity * sizeof(ktrace_recovery_detour)),
                        stubs = area.capacity * stub_room, blob = aligned(agent::blob().bytes.size());
    area.site_codes_room = area.capacity + more_runs_;
    const std::uint64_t site_codes = area.site_codes_room * sizeof(agent::SiteCode);
    const std::uint64_t agent = needs_agent_ ? blob + site_codes + images_size_ + spare_for_images : 0;
    const std::uint64_t code = whole_pages(name_room + records + stubs + agent);
    const auto place = engine::place_arena(maps_, loaded->start, loaded->end, code + engine::CounterBlock::size);
    if (!place) return false;
    area.start = *place;
    area.records = area.start + static_cast<std::int64_t>(name_room);
    area.stubs = area.next = area.records + static_cast<std::int64_t>(records);
    area.counters = area.start + static_cast<std::int64_t>(code);
    if (agent != 0) {
        area.agent = area.stubs + static_cast<std::int64_t>(stubs);
        area.site_codes = area.agent + static_cast<std::int64_t>(blob);
        area.images = area.next_image = area.site_codes + static_cast<std::int64_t>(site_codes);
    }
    area.block = std::make_shared<engine::CounterBlock>();
    area.block->address = area.counters;
    const VirtAddr end = area.counters + static_cast<std::int64_t>(engine::CounterBlock::size);
    note_taken(area.start, end);
    landings_.exclude(area.start, end);
    space_.jumps->areas.push_back(std::move(area));
    return true;
}

std::vector<Extent> Planner::landing_ranges() const {
    std::vector<std::uint64_t> pages;
    for (const Jump *jump : jumps_)
        if (!jump->is_written && jump->landing != jump->stub_at && !space_.slots.contains(jump->landing))
            pages.push_back(jump->landing.value & ~(page_size - 1));
    std::ranges::sort(pages);
    std::vector<Extent> ranges;
    auto is_free_between = [&](VirtAddr start, VirtAddr end) {
        return std::ranges::any_of(landings_.free(),
                                   [&](const jump::Free &each) { return each.start <= start && end <= each.end; });
    };
    for (const std::uint64_t page : pages) {
        const VirtAddr start{page}, end{page + page_size};
        const bool joins = !ranges.empty() && start.value - ranges.back().start.value < widest_gap &&
                           is_free_between(ranges.back().start, end);
        if (joins)
            ranges.back().end = std::max(ranges.back().end, end);
        else
            ranges.push_back({start, end});
    }
    return ranges;
}

} // namespace ktrace::upgrade
