#include "trace/agent_costs.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <sys/mman.h>

#include "agent/blob.h"
#include "agent/layout.h"
#include "arch/in_process.h"
#include "probe/compile.h"

namespace ktrace::trace {

namespace {

using agent::SiteCode;
using agent::Threads;
using arch::HostDetour;

constexpr std::size_t sites = 5, stub_room = 256;
constexpr std::size_t warm_up = 100, batch = 100, batches = 20;

/// Memory of ktrace's own, unmapped at the end.
class Block {
  public:
    explicit Block(std::size_t size) : size_{size} {
        void *at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at != MAP_FAILED) at_ = static_cast<std::byte *>(at);
    }
    ~Block() {
        if (at_) ::munmap(at_, size_);
    }
    Block(const Block &) = delete;

    std::byte *at() const { return at_; }
    VirtAddr address(std::size_t offset = 0) const { return VirtAddr{reinterpret_cast<std::uint64_t>(at_) + offset}; }
    bool protect(int how) {
        if (::mprotect(at_, size_, how) != 0) return false;
        if ((how & PROT_EXEC) != 0)
            __builtin___clear_cache(reinterpret_cast<char *>(at_), reinterpret_cast<char *>(at_ + size_));
        return true;
    }

  private:
    std::byte *at_ = nullptr;
    std::size_t size_;
};

/// A program as `--stats` of a return probe has it.
std::optional<program::Program> stats_program() {
    probe::Actions actions;
    actions.aggregate = probe::Actions::Aggregate::stats;
    probe::LocationRequest request;
    request.kind = probe::Kind::ret;
    auto compiled = probe::compile_all(actions, std::span(&request, 1));
    if (!compiled) return std::nullopt;
    return compiled->front().program;
}

class Stage {
  public:
    explicit Stage(std::span<const std::byte> image)
        : code_(arch::HostDetour::rehearsal_code()), site_codes_at_(round(code_.bytes.size())),
          stubs_at_(site_codes_at_ + round(sites * sizeof(SiteCode))), agent_at_(stubs_at_ + sites * stub_room),
          image_at_(agent_at_ + round(agent::blob().bytes.size())), counters_at_(image_at_ + round(image.size())),
          text_(counters_at_), counters_(arch::counter_rows * arch::counter_row_size), shared_(sizeof(Threads)) {
        if (!text_.at() || !counters_.at() || !shared_.at()) return;
        std::ranges::copy(code_.bytes, text_.at());
        std::ranges::copy(agent::blob().bytes, text_.at() + agent_at_);
        std::ranges::copy(image, text_.at() + image_at_);
        give_place();
        is_ready_ = true;
    }

    bool is_ready() const { return is_ready_; }
    const arch::RehearsalCode &code() const { return code_; }
    Threads &threads() { return *reinterpret_cast<Threads *>(shared_.at()); }
    agent::Thread &thread() { return threads().thread[0]; }

    /// A jump in the place of the instruction at an offset of the code. False: none can be had.
    bool plant(std::size_t offset, program::Moment moment) {
        const std::size_t number = used_++;
        const std::size_t stub_at = stubs_at_ + number * stub_room,
                          handed_at = site_codes_at_ + number * sizeof(SiteCode);
        const std::span<const std::byte> code = std::span(code_.bytes).subspan(offset);
        arch::DetourSite asked;
        asked.at = text_.address(offset);
        asked.code = code.first(std::min(code.size(), HostDetour::longest_window));
        asked.function_end = asked.padding_end = text_.address(code_.bytes.size());
        const auto window = HostDetour::window(asked);
        if (!window) return false;
        const auto stub = HostDetour::agent_stub(*window, asked.code.first(window->length), asked.at,
                                                 text_.address(stub_at), text_.address(handed_at));
        const auto jump = HostDetour::jump(asked.at, text_.address(stub_at));
        if (!stub || !jump || stub->bytes.size() > stub_room) return false;
        const SiteCode site{text_.address(agent_at_).value,       asked.at.value,
                            text_.address(image_at_).value,       shared_.address().value,
                            counters_.address(number * 16).value, counters_.address(number * 16 + 8).value,
                            static_cast<std::uint32_t>(number),   static_cast<std::uint32_t>(moment)};
        std::memcpy(text_.at() + handed_at, &site, sizeof site);
        std::ranges::copy(stub->bytes, text_.at() + stub_at);
        std::ranges::copy(*jump, text_.at() + offset);
        if (moment == program::Moment::ret) know(asked.at.value);
        return true;
    }

    /// Calls a function of the code so many times. Gives what the calls of the site of this number took, in ticks.
    std::vector<std::uint64_t> run(std::size_t function, std::uint32_t number, std::size_t times) {
        std::vector<std::uint64_t> took;
        if (!text_.protect(PROT_READ | PROT_EXEC)) return took;
        const auto call = reinterpret_cast<void (*)(std::uint64_t)>(text_.address(function).value);
        while (took.size() < times) {
            const std::size_t before = took.size();
            call(batch);
            read(number, took);
            if (took.size() == before) break; // it does not work here
        }
        return text_.protect(PROT_READ | PROT_WRITE) ? took : std::vector<std::uint64_t>();
    }

  private:
    static std::size_t round(std::size_t size) { return (size + 63) & ~std::size_t{63}; }

    void give_place() {
        const std::uint64_t pointer = arch::own_thread_pointer();
        agent::Key &key = threads().key[agent::key_of(pointer)];
        key.thread = reinterpret_cast<std::uint64_t>(&thread());
        key.thread_pointer = pointer;
        thread().state = agent::state_of(agent::first_tail, 0);
        thread().head = agent::first_tail;
        thread().stack_high = ~std::uint64_t{0};
    }

    void know(std::uint64_t address) {
        std::size_t at = agent::hash(address) % agent::returns;
        while (threads().return_to[at] != 0) at = (at + 1) % agent::returns;
        threads().return_to[at] = address;
    }

    void read(std::uint32_t number, std::vector<std::uint64_t> &took) {
        std::uint64_t &head = thread().head;
        while (head < agent::tail_of(thread().state)) {
            const std::byte *const at = thread().ring + head % agent::ring_size;
            std::uint32_t words[2]; // size and number: of what fills up a ring there may be no more
            std::memcpy(words, at, sizeof words);
            head += words[0];
            if (words[1] != number) continue;
            agent::Returned returned;
            std::memcpy(&returned, at + sizeof(agent::RingRecord), sizeof returned);
            took.push_back(returned.took);
        }
    }

    arch::RehearsalCode code_;
    std::size_t site_codes_at_, stubs_at_, agent_at_, image_at_, counters_at_, used_ = 0;
    Block text_, counters_, shared_;
    bool is_ready_ = false;
};

/// The least of what is usual in some batches, as for stops (calibrate.cc): rather too little is subtracted.
std::uint64_t typical(std::vector<std::uint64_t> samples) {
    std::uint64_t least = ~std::uint64_t{0};
    for (std::size_t i = warm_up; i + batch <= samples.size(); i += batch) {
        const auto first = samples.begin() + static_cast<std::ptrdiff_t>(i),
                   middle = first + static_cast<std::ptrdiff_t>(batch / 2);
        std::nth_element(first, middle, first + static_cast<std::ptrdiff_t>(batch));
        least = std::min(least, *middle);
    }
    return least;
}

/// In ns, by how much the samples differ from what is usual.
program::TimeErrors errors(std::vector<std::uint64_t> samples, std::uint64_t usual, std::uint64_t ns_per_tick) {
    samples.erase(samples.begin(), samples.begin() + warm_up);
    for (std::uint64_t &each : samples) each = each > usual ? each - usual : usual - each;
    std::ranges::sort(samples);
    double sum = 0;
    for (const std::uint64_t each : samples) sum += static_cast<double>(each);
    auto ns = [&](double ticks) { return std::max(1.0, ticks * static_cast<double>(ns_per_tick) / 4294967296.0); };
    auto below = [&](std::size_t percent) {
        return ns(static_cast<double>(samples[(samples.size() - 1) * percent / 100]));
    };
    return {ns(sum / static_cast<double>(samples.size())), below(50), below(90), below(99)};
}

} // namespace

engine::AgentCosts measure_agent_costs(std::uint64_t ns_per_tick) {
    using program::Moment;
    engine::AgentCosts costs;
    const auto program = stats_program();
    if (!program || ns_per_tick == 0 || agent::blob().bytes.empty()) return costs;
    Stage stage(program->image().bytes());
    if (!stage.is_ready()) return costs;
    constexpr std::size_t calls = warm_up + batch * batches;
    stage.threads().ns_per_tick = ns_per_tick;
    stage.threads().longest_ns = 0; // no bell rings
    const arch::RehearsalCode &code = stage.code();
    // The order of the numbers: around, inner.
    if (!stage.plant(code.around, Moment::call) || !stage.plant(code.returns[1], Moment::ret)) return costs;
    const auto bare = stage.run(code.call_around, 0, calls);
    if (!stage.plant(code.inner, Moment::call) || !stage.plant(code.returns[2], Moment::ret) ||
        !stage.plant(code.returns[0], Moment::ret))
        return costs;
    const auto alone = stage.run(code.call_alone, 2, calls), around = stage.run(code.call_around, 0, calls);
    if (bare.size() < calls || alone.size() < calls || around.size() < calls) return costs;
    const std::uint64_t without = typical(bare), with = typical(around);
    costs.per_call = std::max<std::uint64_t>(1, typical(alone));
    costs.per_hit = with > without ? (with - without) / 2 : 0;
    costs.of_call = errors(alone, costs.per_call, ns_per_tick);
    program::TimeErrors of_both = errors(around, with, ns_per_tick);
    costs.of_hit = of_both / 2;
    return costs;
}

} // namespace ktrace::trace
