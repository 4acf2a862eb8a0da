#include "session/names.h"

#include "symbols/dwarf.h"

namespace ktrace::session {

namespace {

class ModuleSymbolizer final : public output::Symbolizer {
  public:
    explicit ModuleSymbolizer(const State &state) : state_(state) {}

    std::vector<output::NamedFrame> name(std::int32_t pid, std::uint64_t address, bool is_return_address) override {
        output::NamedFrame frame;
        frame.address = address;
        auto process = state_.world.processes.find(pid);
        if (process == state_.world.processes.end()) return {frame};
        VirtAddr at{is_return_address && address != 0 ? address - 1 : address};
        const target::LoadedModule *loaded = target::module_at(process->second->process.modules, at);
        if (!loaded) return {frame};
        std::uint64_t vaddr = at.value - loaded->bias;
        frame.module = std::string(loaded->module->name());
        if (const symbols::Symbol *symbol = loaded->module->covering(vaddr)) {
            frame.symbol = std::string(loaded->module->demangled(*symbol, false));
            frame.offset = address - loaded->bias - symbol->vaddr;
        }
        return {frame};
    }

  private:
    const State &state_;
};

} // namespace

std::unique_ptr<output::Symbolizer> make_symbolizer(const State &state) {
    return std::make_unique<ModuleSymbolizer>(state);
}

} // namespace ktrace::session
