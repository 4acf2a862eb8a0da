#include "session/plugins.h"

#include <cstring>
#include <utility>

#include <unistd.h>

#include "arming/registry.h"
#include "base/clock.h"
#include "engine/eval/stopped_thread.h"
#include "output/render.h"
#include "plugin/plugin.h"

namespace ktrace::session {

using engine::Process;
using plugin::Placed;
using plugin::ProbeRequest;

namespace {

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

Result<probe::Probe> probe_of(const ProbeRequest &request) {
    std::string text = request.symbol;
    if (text.empty())
        text = hex(request.address + request.offset);
    else if (request.offset != 0)
        text += "+" + hex(request.offset);
    auto spec = probe::parse_spec(text);
    if (!spec) return tl::make_unexpected(spec.error());
    probe::Probe probe;
    probe.kind = static_cast<probe::Kind>(request.kind);
    probe.spec = std::move(*spec);
    probe.enabled = request.enabled;
    probe.handler = request.handler;
    if (request.maxactive != 0) probe.maxactive = request.maxactive;
    return probe;
}

class SessionPort final : public plugin::Port {
  public:
    explicit SessionPort(trace::Trace &trace) : trace_(trace), set_(std::make_shared<probe::ProbeSet>()) {}

    Result<std::vector<Placed>> add(std::span<const ProbeRequest> probes, os::Stopped *stopped) override {
        std::vector<probe::Probe> wanted;
        for (const ProbeRequest &request : probes) {
            auto probe = probe_of(request);
            if (!probe) return tl::make_unexpected(probe.error());
            wanted.push_back(std::move(*probe));
        }
        auto numbers = arming::register_probes(trace_, set_, wanted, stopped);
        if (!numbers) return tl::make_unexpected(numbers.error());
        std::vector<Placed> placed;
        for (std::uint32_t number : *numbers) placed.push_back({number, first_place(number)});
        return placed;
    }
    void remove(std::span<const std::uint32_t> numbers) override { arming::unregister_probes(trace_, numbers); }
    Status enable(std::uint32_t number) override { return arming::enable_probes(trace_, {&number, 1}); }
    void disable(std::uint32_t number) override { arming::disable_probes(trace_, {&number, 1}); }

    std::string symbol(const target::Process &process, VirtAddr at) override {
        const target::LoadedModule *loaded = target::module_at(process.modules, at);
        if (!loaded) return {};
        std::uint64_t vaddr = at.value - loaded->bias;
        const symbols::Symbol *symbol = loaded->module->covering(vaddr);
        if (!symbol) return {};
        std::uint64_t size = loaded->module->function_end(symbol->vaddr) - symbol->vaddr;
        return std::string(loaded->module->demangled(*symbol, false)) + "+" + hex(vaddr - symbol->vaddr) + "/" +
               hex(size) + " [" + std::string(loaded->module->name()) + "]";
    }

    std::optional<VirtAddr> lookup(target::Process &process, std::string_view name) override {
        std::size_t colon = name.find(':');
        bool has_module = colon != std::string_view::npos && name.substr(colon, 2) != "::";
        std::string_view wanted = has_module ? name.substr(0, colon) : std::string_view();
        if (has_module) name.remove_prefix(colon + 1);
        for (const target::LoadedModule &loaded : process.modules) {
            if (has_module && !probe::names_module(wanted, *loaded.module)) continue;
            for (const symbols::Symbol *symbol : loaded.module->named(name))
                if (symbol->vaddr != 0 && symbol->kind != symbols::Symbol::Kind::tls)
                    return VirtAddr{symbol->vaddr + loaded.bias};
        }
        return std::nullopt;
    }

    std::vector<std::string> stack(target::Process &process, os::Stopped &stopped) override {
        constexpr std::size_t most_frames = 64;
        std::vector<std::string> lines;
        auto found = trace_.engine.processes.find(process.pid.value);
        if (found == trace_.engine.processes.end()) return lines;
        std::vector<symbols::StackFrame> frames(most_frames);
        frames.resize(engine::unwind_stack(trace_.engine, *found->second, stopped.registers(), frames));
        for (const symbols::StackFrame &frame : frames)
            for (const output::NamedFrame &named :
                 trace_.output.symbolizer->name(process.pid.value, frame.pc, frame.is_call)) {
                std::string line = "    ";
                output::append_frame_text(line, named);
                lines.push_back(std::move(line));
            }
        return lines;
    }

    void log(std::uint64_t time_ns, Pid pid, Tid tid, std::uint32_t level, std::string_view text) override {
        program::RecordHeader header;
        header.moment = program::Moment::log;
        header.time_ns = time_ns != 0 ? time_ns : realtime_ns();
        header.pid = pid.value != 0 ? pid.value : ::getpid(); // no process is left: ktrace itself
        header.tid = pid.value != 0 ? tid.value : ::getpid();
        header.location = level;
        header.set_name(trace_.engine.names.read(Pid{header.pid}, Tid{header.tid}));
        text = text.substr(0, program::max_record - sizeof header);
        header.size = static_cast<std::uint32_t>(sizeof header + text.size());
        auto record = trace_.engine.records.reserve();
        std::memcpy(record.data(), &header, sizeof header);
        std::memcpy(record.data() + sizeof header, text.data(), text.size());
        trace_.engine.records.commit(header.size);
    }

    void complain(Error error) override { trace_.voice.complain(error); }

  private:
    VirtAddr first_place(std::uint32_t number) const {
        auto first = trace_.installed.location_of.lower_bound({number, nullptr, 0, 0});
        if (first == trace_.installed.location_of.end() || std::get<0>(first->first) != number) return {};
        return trace_.installed.locations[first->second]->last_at;
    }

    trace::Trace &trace_;
    std::shared_ptr<probe::ProbeSet> set_;
};

class SessionPlugins final : public trace::Plugins {
  public:
    explicit SessionPlugins(trace::Trace &trace) : trace_(trace), port_(trace) {}

    bool have_started() const override { return started_; }

    Status start(Process &process, os::Stopped *stopped) override {
        if (std::exchange(started_, true)) return {};
        std::vector<os::Mapping> maps;
        for (const auto &[pid, each] : trace_.engine.processes)
            if (auto read = os::read_maps(Pid{pid})) maps.insert(maps.end(), read->begin(), read->end());
        for (const trace::PluginRequest &request : trace_.config.plugins) {
            auto loaded = plugin::Plugin::load(request.path, request.parameters, maps, port_);
            if (!loaded) return tl::make_unexpected(loaded.error());
            auto &plugin = *all_.emplace_back(std::move(*loaded));
            if (auto ready = plugin.init(process.target, stopped); !ready) return ready;
        }
        return {};
    }

    void on_places_changed() override {
        if (!started_) return;
        plugin::Places places;
        for (const auto &[space, arming] : trace_.installed.armings)
            for (const auto &location : arming.locations)
                if (location->attachment.handler)
                    places.emplace(trace_.installed.locations[location->location]->probe, location->at);
        for (auto &each : all_) each->tell_places(places);
    }

    void stop() override {
        target::Process nobody;
        target::Process *process = &nobody;
        for (auto &[pid, each] : trace_.engine.processes)
            if (!each->silent) process = &each->target;
        for (auto each = all_.rbegin(); each != all_.rend(); ++each) (*each)->exit(*process, nullptr);
    }

  private:
    trace::Trace &trace_;
    SessionPort port_;
    std::vector<std::unique_ptr<plugin::Plugin>> all_;
    bool started_ = false;
};

} // namespace

std::shared_ptr<trace::Plugins> make_plugins(trace::Trace &trace) {
    return trace.config.plugins.empty() ? nullptr : std::make_shared<SessionPlugins>(trace);
}

} // namespace ktrace::session
