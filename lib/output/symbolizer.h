// Symbolizer: the seam through which sinks name addresses of a process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ktrace::output {

/// One frame of a stack, named.
struct NamedFrame {
    std::uint64_t address = 0;
    std::string symbol;
    std::uint64_t offset = 0; // from the symbol; without one, the vaddr in the module
    std::string module, file;
    int line = 0;
    bool inlined = false;
    bool trampoline = false; // what a signal handler returns to: its caller was interrupted
};

/// Names the addresses of stacks and pointers to functions; implemented above (session/), since a sink knows no tracee.
class Symbolizer {
  public:
    virtual ~Symbolizer() = default;
    virtual std::vector<NamedFrame> name(std::int32_t pid, std::uint64_t address, bool is_return_address) = 0;
};

} // namespace ktrace::output
