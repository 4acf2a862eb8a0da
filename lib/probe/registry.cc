#include "probe/registry.h"

#include <algorithm>

#include "base/text.h"
#include "probe/compile.h"

namespace ktrace::probe {

std::vector<std::uint32_t> Registry::enter(const std::shared_ptr<ProbeSet> &set, const std::vector<Probe> &probes) {
    auto &entered = set->hidden ? ours_ : all_;
    const std::uint32_t first = set->hidden ? first_of_ours : 1;
    std::vector<std::uint32_t> numbers;
    for (const Probe &probe : probes) {
        auto made = std::make_unique<ProbeEntry>();
        made->probe = probe;
        made->probe.number = first + static_cast<std::uint32_t>(entered.size());
        made->set = set;
        made->state = make_probe_state(made->actions(), table_memory_);
        made->state->is_ours = set->hidden;
        if (keeps_recent_) made->state->aggregation.keep_recent();
        numbers.push_back(made->probe.number);
        entered.push_back(std::move(made));
    }
    return numbers;
}

void Registry::take_back(const std::vector<std::uint32_t> &numbers) {
    for (std::uint32_t number : numbers) at(number).removed = true;
    auto is_theirs = [&](const auto &each) {
        return std::find(numbers.begin(), numbers.end(), each->probe.number) != numbers.end();
    };
    for (auto *list : {&all_, &ours_})
        while (!list->empty() && is_theirs(list->back())) list->pop_back();
}

std::vector<std::uint32_t> Registry::present() const {
    std::vector<std::uint32_t> numbers;
    for (const auto *list : {&all_, &ours_})
        for (const auto &each : *list)
            if (!each->removed) numbers.push_back(each->probe.number);
    return numbers;
}

std::vector<std::uint32_t> Registry::shown() const {
    std::vector<std::uint32_t> numbers = present();
    std::erase_if(numbers, [this](std::uint32_t number) { return at(number).set->hidden; });
    return numbers;
}

Result<std::vector<std::uint32_t>> Registry::named(std::string_view name) const {
    std::vector<std::uint32_t> numbers;
    for (const auto &each : all_)
        if (!each->removed && each->probe.spec.text == name) numbers.push_back(each->probe.number);
    auto number = text::parse_u64(name);
    if (numbers.empty() && number && *number >= 1 && *number <= last() && !all_[*number - 1]->removed)
        numbers.push_back(static_cast<std::uint32_t>(*number));
    if (!numbers.empty()) return numbers;
    bool is_gone = number && *number >= 1 && *number <= last();
    std::string what = number ? "probe " + std::string(name) : "`" + text::escape(name) + "'";
    return fail(Error::Kind::not_found,
                what + (is_gone  ? " was removed"
                        : number ? " does not exist"
                                 : " is no probe here"),
                "ktrace ctl stats shows the probes and their numbers");
}

std::vector<std::uint32_t> Registry::with_those_beside(std::vector<std::uint32_t> numbers) const {
    const std::size_t given = numbers.size();
    for (const auto &each : ours_)
        if (std::find(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(given), each->beside) !=
            numbers.begin() + static_cast<std::ptrdiff_t>(given))
            numbers.push_back(each->probe.number);
    return numbers;
}

bool Registry::is_on(std::uint32_t number) const {
    const ProbeEntry &probe = at(number);
    if (probe.beside != 0 && !is_on(probe.beside)) return false;
    return probe.ready && probe.probe.enabled && !probe.removed && all_on_;
}

} // namespace ktrace::probe
