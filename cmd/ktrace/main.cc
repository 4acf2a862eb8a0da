// ktrace: the command line. Reads it, and runs one command; the exit status is the contract's.
#include <string>
#include <vector>

#include <unistd.h>

#include "base/log.h"
#include "command_line/options.h"
#include "commands.h"
#include "complain.h"
#include "find_processes.h"
#include "help.h"
#include "os/facts/page_size.h"
#include "os/self/descriptors.h"
#include "os/self/memory_bound.h"
#include "os/self/sigbus_guard.h"
#include "output/terminal.h"

namespace {

using ktrace::cli::Command;
using ktrace::cli::Invocation;

using ktrace::cli::bad_usage;
using ktrace::cli::failed;
using ktrace::cli::failed_to_run;

bool traces(Command command) {
    return command == Command::attach || command == Command::run || command == Command::bench ||
           command == Command::stack || command == Command::profile || command == Command::repair;
}

int execute(const Invocation &invocation, const std::vector<std::string> &arguments) {
    switch (invocation.command) {
    case Command::attach: return ktrace::cli::attach(invocation);
    case Command::run: return ktrace::cli::run(invocation);
    case Command::diff: return ktrace::cli::diff(invocation);
    case Command::list: return ktrace::cli::list(invocation);
    case Command::bench: return ktrace::cli::bench(invocation);
    case Command::ctl: return ktrace::cli::ctl(invocation, arguments);
    case Command::doctor: return ktrace::cli::doctor();
    case Command::stack: return ktrace::cli::stack(invocation);
    case Command::profile: return ktrace::cli::profile(invocation);
    case Command::repair: return ktrace::cli::repair(invocation);
    case Command::plugin: return ktrace::cli::plugin(invocation);
    case Command::none: break;
    }
    return bad_usage;
}

} // namespace

int main(int argc, char **argv) {
    ktrace::os::hold_standard_descriptors();
    ktrace::log::configure_from_environment();
    ktrace::os::survive_cut_files();
    ktrace::os::bound_memory();
    std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    auto invocation = ktrace::cli::parse(arguments);
    if (!invocation) {
        ktrace::cli::complain(invocation.error());
        return bad_usage;
    }
    if (invocation->help) {
        const bool bold = ktrace::output::takes_colours(STDOUT_FILENO);
        return ktrace::cli::print(ktrace::cli::help(invocation->command, bold)) ? 0 : failed;
    }
    if (invocation->version) return ktrace::cli::print("ktrace " KTRACE_VERSION "\n") ? 0 : failed;
    if (invocation->config.verbose > 1) ktrace::log::show_all();
    if (auto found = ktrace::cli::find_processes(*invocation); !found) {
        ktrace::cli::complain(found.error());
        return found.error().kind == ktrace::Error::Kind::usage ? bad_usage : failed;
    }
    if (auto fits = ktrace::os::fits_pages(ktrace::os::page_size()); !fits && traces(invocation->command)) {
        ktrace::cli::complain(fits.error());
        return invocation->command == Command::run ? failed_to_run : failed;
    }
    if (auto enough = ktrace::os::allow_many_descriptors(); !enough) {
        ktrace::cli::complain(enough.error());
        return invocation->command == Command::run ? failed_to_run : failed;
    }
    return execute(*invocation, arguments);
}
