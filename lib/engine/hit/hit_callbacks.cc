#include "engine/hit/hit_callbacks.h"

#include "base/clock.h"
#include "engine/calls/calls.h"
#include "engine/eval/hit_handler.h"

namespace ktrace::engine {

using arch::Host;

namespace {

HandlerHit view(Process &process, Task &task, VirtAddr at, os::Stopped &stopped, std::uint64_t now_ns) {
    return {stopped, process.target, task, at, now_ns};
}

/// When a stop was seen; it is looked at closely only where there are return probes.
std::uint64_t seen_ns(const os::Stopped &stopped) {
    return stopped.stop().seen_ns != 0 ? stopped.stop().seen_ns : monotonic_ns();
}

/// Shows the thread at `at` for as long as a handler runs. A pc that the handler has changed counts only if it says so.
class ShownAt {
  public:
    ShownAt(os::Stopped &stopped, VirtAddr at) : stopped_(stopped), before_(stopped.pc()) { stopped.set_pc(at); }
    ~ShownAt() {
        if (!kept_) stopped_.set_pc(before_);
    }
    ShownAt(const ShownAt &) = delete;
    void keep() { kept_ = true; }

  private:
    os::Stopped &stopped_;
    VirtAddr before_;
    bool kept_ = false;
};

void handle_call(Engine &engine, Process &process, Task &task, Attachment &attachment, Site &site,
                 os::Stopped &stopped) {
    Instance *call = begin_call(engine, process, task, attachment, site, stopped, {});
    if (!call) return;
    call->seen_ns = seen_ns(stopped);
    VirtAddr return_address = call->frame.return_address;
    HandlerHit hit = view(process, task, site.at, stopped, call->seen_ns);
    auto name = attachment.handler->call(hit, return_address);
    if (attachment.dismissed) { // meanwhile, and the call has ended with it
        if (name) attachment.handler->dropped(*name);
    } else if (name) {
        call->handler_call = name;
    } else {
        attachment.counters->filtered++;
        end_returned(engine, process, *call);
    }
}

} // namespace

Handled handle_hit(Engine &engine, Process &process, Task &task, Attachment &attachment, Site &site,
                   os::Stopped &stopped) {
    Handled handled;
    attachment.counters->hits++;
    ShownAt shown(stopped, site.at);
    if (attachment.kind == Attachment::Kind::ret) {
        handle_call(engine, process, task, attachment, site, stopped);
        return handled;
    }
    attachment.counters->events++;
    HandlerHit hit = view(process, task, site.at, stopped, seen_ns(stopped));
    if (attachment.kind == Attachment::Kind::entry) {
        attachment.handler->entry(hit);
        return handled;
    }
    handled.pc_is_set = attachment.handler->pre(hit);
    handled.post = !handled.pc_is_set && attachment.handler->has_post();
    if (handled.pc_is_set) shown.keep();
    return handled;
}

void handle_post(Process &process, Task &task, Attachment &attachment, Site &site, os::Stopped &stopped) {
    ShownAt shown(stopped, stopped.pc());
    HandlerHit hit = view(process, task, site.at, stopped, seen_ns(stopped));
    attachment.handler->post(hit);
}

void handle_return(Engine &engine, Process &process, Task &task, Instance &call, VirtAddr returned_to,
                   std::uint64_t duration_ns, os::Stopped &stopped) {
    Attachment &attachment = *call.attachment;
    auto name = std::exchange(call.handler_call, std::nullopt);
    std::uint64_t now_ns = call.seen_ns + duration_ns;
    attachment.counters->events++;
    // First, so that the handler may take out its own probe.
    end_returned(engine, process, call);
    if (!name) return;
    ShownAt shown(stopped, returned_to);
    HandlerHit hit = view(process, task, returned_to, stopped, now_ns);
    attachment.handler->ret(hit, *name, duration_ns);
}

bool handle_fault(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped,
                  const siginfo_t &info) {
    if (engine.closing || process.silent) return false;
    int trap = Host::fault_number(info.si_signo, info.si_code != SI_KERNEL);
    for (std::size_t i = 0; i < site.attachments.size(); i++) {
        Attachment &attachment = *site.attachments[i];
        if (!attachment.on || !attachment.handler || !attachment.handler->has_fault()) continue;
        HandlerHit hit = view(process, task, site.at, stopped, seen_ns(stopped));
        if (attachment.handler->fault(hit, trap)) return true;
    }
    return false;
}

} // namespace ktrace::engine
