#include "agent/blob.h"

#include "arch/host.h"

asm(".pushsection .rodata\n"
    ".globl ktrace_agent_begin, ktrace_agent_end\n"
    "ktrace_agent_begin: .incbin \"" KTRACE_AGENT "\"\n"
    "ktrace_agent_end:\n"
    ".popsection\n");

extern "C" const std::byte ktrace_agent_begin[], ktrace_agent_end[];

namespace ktrace::agent {

const Blob &blob() {
    static const Blob all = [] {
        arch::AgentEntry entry = arch::HostDetour::agent_entry();
        Blob made{std::move(entry.bytes), entry.bell};
        made.bytes.insert(made.bytes.end(), ktrace_agent_begin, ktrace_agent_end);
        return made;
    }();
    return all;
}

} // namespace ktrace::agent
