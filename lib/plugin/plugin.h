// Plugin: one shared object in the kprobes style, in its host; the calls of its handlers, and their requests.
//
// Invariants: a handler that faults, throws or takes too long is named in an error and its probe disabled; a host that
// dies takes the plugin's probes with it and nothing else; nothing of the plugin's runs after that.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugin/channel.h"
#include "plugin/mirrored.h"
#include "plugin/port.h"
#include "plugin/wire.h"

namespace ktrace::plugin {

class PluginProbe;

/// Where probes are, by the trace's numbers of them.
using Places = std::set<std::pair<std::uint32_t, VirtAddr>>;

/// Whom a Call runs for.
struct Occasion {
    target::Process &process;
    Tid tid;
    engine::HandlerHit *hit = nullptr; // nullptr: init, exit
};

class Plugin {
  public:
    /// Starts a host and loads `path` with `parameters` (name=value …) into it. `maps`: of all processes that are
    /// traced. `port` outlives the plugin. Errors: refused (why it cannot be loaded), system.
    static Result<std::unique_ptr<Plugin>> load(const std::string &path, const std::string &parameters,
                                                const std::vector<os::Mapping> &maps, Port &port);
    ~Plugin();

    const std::string &name() const { return name_; }

    /// Libraries have come or gone: where all probes of plugins are now.
    void tell_places(const Places &places);

    /// Runs module_init on behalf of a process, with one of its tasks stopped. Errors: refused.
    Status init(target::Process &process, os::Stopped *stopped);
    /// Runs module_exit, and takes out what it has left registered.
    void exit(target::Process &process, os::Stopped *stopped);

  private:
    friend class PluginProbe;

    explicit Plugin(Port &port);
    Status open(const std::vector<os::Mapping> &maps);
    Status load_object(const std::string &path, const std::string &parameters);

    /// Runs a Call to its end. False: it did not end as it should; that has been reported.
    bool run(Call call, const Occasion &occasion, PluginProbe *probe, std::uint64_t limit_ns);
    bool converse(Call call, const Occasion &occasion, std::uint64_t limit_ns);
    void answer(Request request, const Occasion &occasion);
    std::int64_t add(const Occasion &occasion);
    void remove();
    void take_log(const Occasion &occasion);
    void put_notes();
    void flush_notes(const Occasion &occasion);
    bool check_window(const Occasion &occasion);
    void complain_of(Call call, PluginProbe *probe, Ended ended);
    void give_up(const std::string &why);
    PluginProbe *probe(std::uint64_t number);

    Port &port_;
    std::string name_;
    Window window_;
    std::unique_ptr<Channel> channel_;
    std::unique_ptr<Mirrored> mirrored_;
    std::vector<std::unique_ptr<PluginProbe>> all_; // those that were removed, too: tasks may be on their sites
    std::unordered_map<std::uint64_t, PluginProbe *> by_number_; // of the host's
    std::deque<Note> notes_;
    os::Stopped *stopped_ = nullptr; // init, exit: a task that may be used
    bool broken_ = false;
    bool in_call_ = false;
};

} // namespace ktrace::plugin
