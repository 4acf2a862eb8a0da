// First steps: a beginning, where a process is named and nothing to probe in it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "inspect/catalog.h"

namespace ktrace::inspect {

struct FirstSteps {
    std::string module;        // the program's
    std::size_t functions = 0; // of it, by name
    std::string example; // a SPEC of one with much code: of the program, else of the C library; empty: there is none
};

/// `modules`: those of one process, the program first.
FirstSteps first_steps(const std::vector<CatalogModule> &modules);

} // namespace ktrace::inspect
