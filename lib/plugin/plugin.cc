#include "plugin/plugin.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "base/text.h"
#include "plugin/probe.h"
#include "plugin/window.h"

namespace ktrace::plugin {

namespace {

constexpr std::uint64_t handler_limit_ns = 2'000'000'000U;
constexpr std::uint64_t init_limit_ns = 10'000'000'000U;
/// The time that a page of the target may cost the host where page tables are slow to change (some virtual machines):
/// that is ktrace's doing. All together is bounded: a handler may walk in a circle that is larger than the pool.
constexpr std::uint64_t page_ns = 500'000, all_pages_ns = 20'000'000'000U;
constexpr std::uint64_t grace_ns = 1'000'000'000U; // for a late handler to be ended within its host

const char *function_of(Call call) {
    switch (call) {
    case Call::init: return "module_init";
    case Call::exit: return "module_exit";
    case Call::pre: return "pre_handler";
    case Call::post: return "post_handler";
    case Call::entry: return "entry";
    case Call::call: return "entry_handler";
    case Call::ret: return "handler";
    case Call::fault: return "fault_handler";
    default: return "code";
    }
}

std::string ending(Ended ended, const std::string &detail, std::uint64_t limit_ns) {
    std::string in_brackets = detail.empty() ? "" : " (" + detail + ")";
    switch (ended) {
    case Ended::faulted: return "faulted" + in_brackets;
    case Ended::late: return "took longer than " + std::to_string(limit_ns / 1'000'000'000U) + " s";
    case Ended::threw: return "threw an exception" + in_brackets;
    case Ended::aborted: return "gave up" + in_brackets;
    case Ended::returned: break;
    }
    return "failed";
}

/// kprobes' errno for a probe that cannot be had.
int errno_of(const Error &error) {
    switch (error.kind) {
    case Error::Kind::not_found: return ENOENT;
    case Error::Kind::denied: return EPERM;
    case Error::Kind::gone: return ESRCH;
    case Error::Kind::fault: return EFAULT;
    default: return EINVAL;
    }
}

std::string text_of(Wire &wire) {
    wire.text[sizeof wire.text - 1] = 0;
    return wire.text;
}

void set_text(Wire &wire, std::string_view text) {
    std::size_t size = std::min(text.size(), sizeof wire.text - 1);
    std::memcpy(wire.text, text.data(), size);
    wire.text[size] = 0;
}

/// The wishes in the bulk, each with its symbol. Nothing: the host has written nonsense.
std::optional<std::vector<std::pair<ProbeWish, std::string>>> read_wishes(const Wire &wire) {
    std::vector<std::pair<ProbeWish, std::string>> wishes;
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < wire.count; i++) {
        ProbeWish wish;
        if (sizeof wire.bulk - at < sizeof wish) return std::nullopt;
        std::memcpy(&wish, wire.bulk + at, sizeof wish);
        at += sizeof wish;
        if (padded(wish.symbol_size) < wish.symbol_size || sizeof wire.bulk - at < padded(wish.symbol_size))
            return std::nullopt;
        wishes.emplace_back(wish, std::string(reinterpret_cast<const char *>(wire.bulk + at), wish.symbol_size));
        at += padded(wish.symbol_size);
    }
    return wishes;
}

std::string name_of(const ProbeWish &wish, const std::string &symbol) {
    char hex[32];
    std::snprintf(hex, sizeof hex, "0x%llx",
                  static_cast<unsigned long long>(symbol.empty() ? wish.address + wish.offset : wish.offset));
    if (symbol.empty()) return hex;
    return wish.offset == 0 ? symbol : symbol + "+" + hex;
}

} // namespace

Result<std::unique_ptr<Plugin>> Plugin::load(const std::string &path, const std::string &parameters,
                                             const std::vector<os::Mapping> &maps, Port &port) {
    std::unique_ptr<Plugin> plugin(new Plugin(port));
    plugin->name_ = text::base_name(path);
    Status ready = plugin->open(maps);
    if (ready) ready = plugin->load_object(path, parameters);
    if (!ready) return fail(std::move(ready.error()).with("plugin " + text::escape(path)));
    return plugin;
}

Plugin::Plugin(Port &port) : port_(port) {}
Plugin::~Plugin() = default;

Status Plugin::open(const std::vector<os::Mapping> &maps) {
    Error last{Error::Kind::refused, "there is no address range that the target leaves free", {}, {}, -1, 1};
    for (unsigned attempt = 0; attempt < window_attempts; attempt++) {
        auto window = choose_window(maps, attempt);
        if (!window) break;
        auto channel = Channel::start(*window);
        if (channel) {
            window_ = *window;
            channel_ = std::move(*channel);
            mirrored_ = std::make_unique<Mirrored>(*channel_);
            return {};
        }
        last = channel.error();
        if (last.kind != Error::Kind::refused) break;
    }
    return fail(last);
}

Status Plugin::load_object(const std::string &path, const std::string &parameters) {
    // dlopen looks for a name without a slash elsewhere.
    std::string file = path.find('/') == std::string::npos ? "./" + path : path;
    if (::access(file.c_str(), R_OK) != 0)
        return fail(Error::Kind::not_found, std::string("it cannot be read: ") + std::strerror(errno));
    Wire &wire = channel_->wire();
    if (file.size() + parameters.size() + 2 > sizeof wire.bulk)
        return fail(Error::Kind::usage, "its parameters are too long");
    std::memcpy(wire.bulk, file.c_str(), file.size() + 1);
    std::memcpy(wire.bulk + file.size() + 1, parameters.c_str(), parameters.size() + 1);
    // The requests of its constructors are answered as for a process without memory.
    target::Process nobody;
    if (!converse(Call::load, {nobody, Tid{}, nullptr}, init_limit_ns))
        return fail(Error::Kind::refused, "its host died while it was loaded");
    if (wire.ended != Ended::returned)
        return fail(Error::Kind::refused,
                    "it " + ending(wire.ended, text_of(wire), init_limit_ns) + " as it was loaded");
    if (wire.result != 0) {
        const bool is_source = file.ends_with(".c") || file.ends_with(".cc") || file.ends_with(".cpp");
        return fail(Error::Kind::refused, text::escape(text_of(wire)),
                    is_source ? "build it first: ktrace plugin build " + text::escape(path) : "");
    }
    return {};
}

Status Plugin::init(target::Process &process, os::Stopped *stopped) {
    stopped_ = stopped;
    bool ran = run(Call::init, {process, Tid{process.pid.value}, nullptr}, nullptr, init_limit_ns);
    stopped_ = nullptr;
    auto result = static_cast<int>(channel_->wire().result);
    if (ran && result == 0) return {};
    // As in a kernel: a module that was not started does not exit. Its probes go.
    if (!broken_) give_up({});
    if (!ran) return fail(Error::Kind::refused, "plugin " + name_ + " could not be started");
    std::string why = std::to_string(result);
    if (result < 0) why += std::string(" (") + std::strerror(-result) + ")";
    return fail(Error::Kind::refused, "plugin " + name_ + ": its module_init returned " + why, "its log may say why");
}

void Plugin::exit(target::Process &process, os::Stopped *stopped) {
    if (broken_) return;
    stopped_ = stopped;
    run(Call::exit, {process, Tid{process.pid.value}, nullptr}, nullptr, init_limit_ns);
    stopped_ = nullptr;
    give_up({});
}

bool Plugin::run(Call call, const Occasion &occasion, PluginProbe *probe, std::uint64_t limit_ns) {
    // A handler itself hits no probe: its thread is stopped, and its host is not traced.
    if (broken_ || in_call_ || !check_window(occasion)) return false;
    in_call_ = true;
    flush_notes(occasion);
    bool answered = !broken_ && converse(call, occasion, limit_ns == 0 ? handler_limit_ns : limit_ns);
    in_call_ = false;
    if (!answered) {
        std::string of = probe ? " of " + probe->name() : "";
        if (!broken_) give_up(std::string("its ") + function_of(call) + of + " ended its host, or does not end");
        return false;
    }
    Ended ended = channel_->wire().ended;
    const bool without_return = call == Call::entry && ended == Ended::returned && channel_->wire().count == 1;
    if (without_return && !std::exchange(probe->told_of_return_, true))
        port_.log(0, occasion.process.pid, occasion.tid, 4,
                  "plugin " + name_ + ": the entry of " + probe->name() + " ended without jprobe_return()");
    if (ended == Ended::returned) return true;
    complain_of(call, probe, ended);
    return false;
}

bool Plugin::converse(Call call, const Occasion &occasion, std::uint64_t limit_ns) {
    Wire &wire = channel_->wire();
    wire.pid = occasion.process.pid.value;
    wire.tid = occasion.tid.value;
    put_notes();
    channel_->hand_over(call);
    bool late = false;
    Allowance allowance{limit_ns, 0, {}}; // however often it asks for something
    std::uint64_t for_pages_ns = all_pages_ns;
    while (true) {
        if (allowance.left_ns == 0) {
            if (late || channel_->dead()) break;
            late = true;
            allowance.left_ns = grace_ns;
            channel_->tell_late();
        }
        bool answered = channel_->wait(allowance);
        if (!answered && channel_->dead()) break;
        if (!answered) continue;
        auto request = static_cast<Request>(wire.kind);
        if (request == Request::done) {
            take_log(occasion);
            mirrored_->write_back(occasion.process);
            return true;
        }
        answer(request, occasion);
        const bool has_page = (request == Request::page || request == Request::write_page) && wire.result >= 0;
        if (has_page && for_pages_ns >= page_ns && !late) {
            for_pages_ns -= page_ns;
            allowance.left_ns += page_ns;
        }
        wire.pid = occasion.process.pid.value;
        wire.tid = occasion.tid.value;
        channel_->hand_over(Call::answer);
    }
    channel_->kill();
    mirrored_->forget();
    return false;
}

void Plugin::answer(Request request, const Occasion &occasion) {
    Wire &wire = channel_->wire();
    target::Process &process = occasion.process;
    VirtAddr address{wire.address};
    bool has_memory = process.space != nullptr;
    wire.result = -1;
    switch (request) {
    case Request::page: {
        auto number = has_memory ? mirrored_->bring(process, address) : std::nullopt;
        if (number) wire.result = static_cast<std::int64_t>(*number);
        break;
    }
    case Request::write_page:
        if (has_memory && mirrored_->allow_writing(process, address)) wire.result = 0;
        break;
    case Request::clear:
        if (has_memory) mirrored_->write_back(process);
        break;
    case Request::add: wire.result = add(occasion); break;
    case Request::remove:
        remove();
        put_notes();
        break;
    case Request::enable:
    case Request::disable: {
        PluginProbe *which = probe(wire.probe);
        wire.result = which ? 0 : -EINVAL;
        if (which && request == Request::disable) port_.disable(which->registered_as);
        if (which && request == Request::enable)
            if (auto enabled = port_.enable(which->registered_as); !enabled) wire.result = -errno_of(enabled.error());
        break;
    }
    case Request::symbol: set_text(wire, has_memory ? port_.symbol(process, address) : std::string()); break;
    case Request::lookup: {
        auto found = has_memory ? port_.lookup(process, text_of(wire)) : std::nullopt;
        wire.address = found ? found->value : 0;
        break;
    }
    case Request::comm: set_text(wire, os::read_comm(Pid{wire.pid}, Tid{wire.tid})); break;
    case Request::stack:
        take_log(occasion);
        if (occasion.hit)
            for (const std::string &frame : port_.stack(process, occasion.hit->stopped))
                port_.log(0, process.pid, occasion.tid, 6, frame);
        break;
    case Request::flush: take_log(occasion); break;
    case Request::done: break;
    }
}

std::int64_t Plugin::add(const Occasion &occasion) {
    Wire &wire = channel_->wire();
    auto wishes = read_wishes(wire);
    if (!wishes) return -EINVAL;
    std::vector<ProbeRequest> requests;
    std::vector<std::unique_ptr<PluginProbe>> made;
    for (const auto &[wish, symbol] : *wishes) {
        made.push_back(std::make_unique<PluginProbe>(*this, wish, name_of(wish, symbol)));
        requests.push_back(
            {wish.kind, symbol, wish.offset, wish.address, wish.disabled == 0, wish.maxactive, made.back().get()});
    }
    auto placed = port_.add(requests, occasion.hit ? &occasion.hit->stopped : stopped_);
    if (!placed) {
        Error why = placed.error();
        why.message += "; plugin " + name_ + " wants a probe there";
        port_.complain(std::move(why));
        return -errno_of(placed.error());
    }
    for (std::size_t i = 0; i < made.size(); i++) {
        made[i]->registered_as = (*placed)[i].number;
        by_number_[(*wishes)[i].first.probe] = made[i].get();
        made[i]->at_ = (*placed)[i].at;
        std::uint64_t at = (*placed)[i].at.value;
        std::memcpy(wire.bulk + i * sizeof at, &at, sizeof at);
        all_.push_back(std::move(made[i]));
    }
    return 0;
}

void Plugin::tell_places(const Places &places) {
    for (const auto &[number, each] : by_number_) {
        if (places.contains({each->registered_as, each->at_})) {
            each->place(each->at_);
            continue;
        }
        auto first = places.lower_bound({each->registered_as, VirtAddr{}});
        bool is_there = first != places.end() && first->first == each->registered_as;
        each->place(is_there ? std::optional(first->second) : std::nullopt);
    }
}

void Plugin::remove() {
    Wire &wire = channel_->wire();
    std::vector<std::uint32_t> leaving;
    std::size_t count = std::min<std::size_t>(wire.count, sizeof(Wire::bulk) / 8);
    for (std::size_t i = 0; i < count; i++) {
        std::uint64_t number;
        std::memcpy(&number, wire.bulk + i * sizeof number, sizeof number);
        PluginProbe *which = probe(number);
        if (!which) continue;
        leaving.push_back(which->registered_as);
        which->dead_ = true;
        by_number_.erase(number);
    }
    port_.remove(leaving);
    wire.result = 0;
}

PluginProbe *Plugin::probe(std::uint64_t number) {
    auto found = by_number_.find(number);
    return found == by_number_.end() ? nullptr : found->second;
}

void Plugin::take_log(const Occasion &occasion) {
    Wire &wire = channel_->wire();
    std::size_t end = std::min<std::size_t>(wire.log_used, sizeof wire.log);
    for (std::size_t at = 0; at + sizeof(LogLine) <= end;) {
        LogLine line;
        std::memcpy(&line, wire.log + at, sizeof line);
        at += sizeof line;
        if (line.size > end - at) break;
        port_.log(line.time_ns, occasion.process.pid, occasion.tid, line.level,
                  std::string_view(reinterpret_cast<const char *>(wire.log + at), line.size));
        at += padded(line.size);
    }
    wire.log_used = 0;
}

void Plugin::put_notes() {
    Wire &wire = channel_->wire();
    wire.note_count = 0;
    while (!notes_.empty() && wire.note_count < most_notes) {
        wire.notes[wire.note_count++] = notes_.front();
        notes_.pop_front();
    }
}

void Plugin::flush_notes(const Occasion &occasion) {
    while (notes_.size() > most_notes && converse(Call::notes, occasion, handler_limit_ns)) {
    }
}

bool Plugin::check_window(const Occasion &occasion) {
    if (!is_taken(occasion.process.pid, window_)) return true;
    give_up("process " + std::to_string(occasion.process.pid.value) +
            " has mapped memory at the addresses that the plugin itself is at");
    return false;
}

void Plugin::complain_of(Call call, PluginProbe *probe, Ended ended) {
    std::string detail = text::escape(text_of(channel_->wire()));
    std::string what = "plugin " + name_ + ": its " + function_of(call);
    if (probe) what += " of " + probe->name();
    what += " " + ending(ended, detail, probe ? handler_limit_ns : init_limit_ns);
    if (probe) what += "; the probe is disabled";
    port_.complain({Error::Kind::refused, what, {}, {}, -1, 1});
    if (!probe) return;
    probe->failures_++;
    if (probe->registered_as != 0) port_.disable(probe->registered_as);
}

void Plugin::give_up(const std::string &why) {
    broken_ = true;
    std::vector<std::uint32_t> leaving;
    for (const auto &[number, each] : by_number_) {
        leaving.push_back(each->registered_as);
        each->dead_ = true;
    }
    by_number_.clear();
    channel_->kill();
    if (!why.empty())
        port_.complain(
            {Error::Kind::refused, "plugin " + name_ + ": " + why + "; its probes are removed", {}, {}, -1, 1});
    port_.remove(leaving);
}

} // namespace ktrace::plugin
