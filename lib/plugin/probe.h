// PluginProbe: one probe of a plugin's, as the trap room runs it.
#pragma once

#include <string>

#include "engine/eval/hit_handler.h"
#include "plugin/plugin.h"

namespace ktrace::plugin {

class PluginProbe final : public engine::HitHandler {
  public:
    PluginProbe(Plugin &plugin, const ProbeWish &wish, std::string name)
        : plugin_(plugin), number_(wish.probe), handlers_(wish.handlers), name_(std::move(name)) {}

    bool pre(engine::HandlerHit &hit) override;
    bool has_post() const override { return !dead_ && (handlers_ & has_after) != 0; }
    void post(engine::HandlerHit &hit) override;
    void entry(engine::HandlerHit &hit) override;
    std::optional<std::uint64_t> call(engine::HandlerHit &hit, VirtAddr return_address) override;
    void missed() override;
    void ret(engine::HandlerHit &hit, std::uint64_t call, std::uint64_t duration_ns) override;
    void dropped(std::uint64_t call) override;
    bool has_fault() const override { return !dead_ && (handlers_ & has_fault_handler) != 0; }
    bool fault(engine::HandlerHit &hit, int trap) override;

    const std::string &name() const { return name_; }
    /// Where it is now; nothing: nowhere any more, or not yet. The plugin learns it with its next Call.
    void place(std::optional<VirtAddr> at);
    /// The trace's number of it.
    std::uint32_t registered_as = 0;

  private:
    friend class Plugin;
    Wire &wire() const { return plugin_.channel_->wire(); }
    bool run(Call call, engine::HandlerHit &hit);
    void put_registers(engine::HandlerHit &hit);
    void take_registers(engine::HandlerHit &hit);

    Plugin &plugin_;
    std::uint32_t number_; // the host's
    std::uint8_t handlers_;
    std::string name_;
    VirtAddr at_;       // as the plugin knows it; 0: nowhere yet
    bool gone_ = false; // it was there
    std::uint64_t missed_ = 0;
    std::uint32_t failures_ = 0;  // of its handlers: calls that began before one are not reported any more
    bool told_of_return_ = false; // that its entry ends without jprobe_return()
    bool dead_ = false;           // unregistered, or its plugin is broken
};

} // namespace ktrace::plugin
