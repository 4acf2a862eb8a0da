#include "judging/expectations.h"

#include <algorithm>

#include "base/text.h"
#include "judging/cases.h"
#include "output/sink.h"
#include "output/writer.h"

namespace ktrace::judging {

namespace {

using expect::Claim;

Error at_name(const Claim &claim, const std::string &name, std::string message, std::string hint) {
    const std::size_t at = claim.given.find(name);
    return {Error::Kind::usage, std::move(message),   std::move(hint),
            claim.given,        static_cast<int>(at), static_cast<int>(name.size())};
}

/// A name means a probe by its SPEC, or by its function, which may be one of a glob's.
bool means(const std::string &name, const probe::Spec &spec) {
    if (name == spec.text) return true;
    if (spec.form != probe::Spec::Form::symbol || spec.offset != 0) return false;
    return name == spec.symbol || (text::is_glob(spec.symbol) && text::glob_match(spec.symbol, name));
}

/// The user's probes that a name means.
std::vector<std::uint32_t> named(const trace::Trace &trace, const std::string &name) {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t number : trace.registry.shown())
        if (means(name, trace.registry.at(number).probe.spec)) numbers.push_back(number);
    return numbers;
}

bool has_own(const trace::Config &config, std::uint32_t number) {
    return std::any_of(config.expectations.begin(), config.expectations.end(),
                       [&](const auto &each) { return each.probe == number; });
}

/// The probes that an expectation is of. Errors: usage: there is none.
Result<std::vector<std::uint32_t>> probes_of(const trace::Trace &trace, const trace::Expectation &expectation,
                                             const Claim &claim) {
    std::vector<std::uint32_t> numbers = trace.registry.shown();
    const bool is_named = !claim.whose.empty() && !claim.is_of_all();
    std::erase_if(numbers, [&](std::uint32_t number) {
        if (expectation.probe != 0 && number != expectation.probe) return true;
        if (is_named) return !means(claim.whose, trace.registry.at(number).probe.spec);
        return expectation.probe == 0 && !claim.is_of_all() && has_own(trace.config, number);
    });
    if (numbers.empty() && is_named)
        return fail(at_name(claim, claim.whose, "no probe of this command is `" + text::escape(claim.whose) + "'",
                            "it is a function, or a SPEC as it was given"));
    std::erase_if(numbers, [&](std::uint32_t number) { return !Measures::fits(trace, claim, number); });
    if (!numbers.empty()) return numbers;
    return fail(at_name(claim, claim.text, "no probe has these figures",
                        "-r measures durations, and --stats=EXPR the values of an EXPR"));
}

/// Where a function is to be found that a glob has found, too.
Result<probe::Spec> spec_of(const probe::Spec &spec, const std::string &name) {
    if (name == spec.text || !text::is_glob(spec.symbol)) return spec;
    return probe::parse_spec(spec.module.empty() ? name : spec.module + ':' + name);
}

/// As in the output, with the ends of its lines.
std::string event_text(const trace::Trace &trace, std::span<const std::byte> record,
                       const program::LocationInfo &location) {
    output::Writer nowhere(-1, {});
    output::make_text_sink(nowhere, trace.output.symbolizer.get(), {trace.config.exact_times, false})
        ->record(record, location);
    return std::exchange(nowhere.buffer(), {});
}

} // namespace

Result<std::unique_ptr<Expectations>> Expectations::begin(trace::Trace &trace) {
    auto made = std::make_unique<Expectations>();
    if (auto prepared = made->prepare(trace); !prepared) return fail(prepared.error());
    if (!made->uses_.empty())
        trace.output.takes = [&trace, &made = *made](std::span<const std::byte> record,
                                                     const program::RecordHeader &header) {
            return made.take(trace, record, header);
        };
    return made;
}

Status Expectations::prepare(trace::Trace &trace) {
    Measures measures(trace);
    for (const trace::Expectation &expectation : trace.config.expectations) {
        auto claim = expect::parse_claim(expectation.text, expect::Runs::one);
        if (!claim) return fail(claim.error());
        Judged &judged = *all_.emplace_back(std::make_unique<Judged>());
        judged.claim = std::move(*claim);
        if (judged.claim.is_of_order()) {
            if (auto prepared = prepare_order(trace, judged); !prepared) return prepared;
            continue;
        }
        auto numbers = probes_of(trace, expectation, judged.claim);
        if (!numbers) return fail(numbers.error());
        judged.probes.resize(numbers->size());
        for (std::size_t i = 0; i < numbers->size(); i++) measures.want(judged.claim, (*numbers)[i], judged.probes[i]);
    }
    if (auto registered = measures.register_all(); !registered) return registered;
    for (const auto &judged : all_)
        for (const Measured &each : judged->probes)
            if (each.event != 0) uses_[each.event].push_back({judged.get(), {}});
    return {};
}

Status Expectations::prepare_order(trace::Trace &trace, Judged &judged) {
    Measures measures(trace);
    struct Entries {
        expect::Order::Name name;
        std::uint32_t number = 0;
    };
    std::vector<std::unique_ptr<Entries>> wanted;
    bool is_sorted = true;
    for (auto [text, name] : {std::pair(&judged.claim.first, expect::Order::Name::first),
                              std::pair(&judged.claim.second, expect::Order::Name::second)}) {
        const std::vector<std::uint32_t> numbers = named(trace, *text);
        if (numbers.empty())
            return fail(at_name(judged.claim, *text, "no probe of this command is `" + text::escape(*text) + "'",
                                "it is a function, or a SPEC as it was given"));
        for (std::uint32_t number : numbers) {
            const probe::ProbeEntry &entry = trace.registry.at(number);
            auto spec = spec_of(entry.probe.spec, *text);
            if (!spec) return fail(spec.error());
            is_sorted = is_sorted && !decides_late(entry);
            wanted.push_back(std::make_unique<Entries>(Entries{name}));
            measures.want_entries(judged.claim, number, std::move(*spec), wanted.back()->number);
        }
    }
    judged.order.emplace(judged.claim.kind, is_sorted);
    if (auto registered = measures.register_all(); !registered) return registered;
    for (const auto &each : wanted) uses_[each->number].push_back({&judged, each->name});
    return {};
}

bool Expectations::take(const trace::Trace &trace, std::span<const std::byte> record,
                        const program::RecordHeader &header) {
    if (header.moment == program::Moment::log) return false;
    const trace::CountedLocation &location = *trace.installed.locations[header.location];
    auto uses = uses_.find(location.probe);
    if (uses == uses_.end()) return false;
    for (const Use &use : uses->second) {
        if (use.name) {
            const bool has_returned = header.moment == program::Moment::ret;
            use.judged->order->add({header.pid, header.tid}, has_returned ? header.entry_ns : header.time_ns,
                                   *use.name);
            continue;
        }
        std::string &event = use.judged->events[report::key_of(location)];
        if (event.empty()) event = event_text(trace, record, location.info);
    }
    return true;
}

std::vector<expect::Case> Expectations::judge(trace::Trace &trace) const {
    std::vector<expect::Case> cases;
    for (const auto &judged : all_) {
        const Claim &claim = judged->claim;
        std::vector<expect::Case> more = judged->order ? cases_of_order(claim, *judged->order)
                                         : claim.is_of_all()
                                             ? cases_of_all(trace, claim, judged->probes, judged->events)
                                             : cases_of(trace, claim, judged->probes, judged->events);
        std::move(more.begin(), more.end(), std::back_inserter(cases));
    }
    return cases;
}

std::vector<expect::Case> not_judged(const trace::Config &config, const std::string &reason) {
    std::vector<expect::Case> cases;
    for (const trace::Expectation &each : config.expectations) cases.push_back(expect::not_judged(each.text, reason));
    return cases;
}

} // namespace ktrace::judging
