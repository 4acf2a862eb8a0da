// The plugin host: a process of ktrace's that one plugin runs in. ktrace starts it with
//   ktrace-plugin-host --window START SIZE --wire FD --life FD
// It starts itself again in the window (start.h), then serves ktrace's Calls, one at a time, until its end of the life
// socket is closed: then, whatever it is doing, SIGIO ends it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <csignal>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plugin/host/clock.h"
#include "plugin/host/guard.h"
#include "plugin/host/log.h"
#include "plugin/host/mirror.h"
#include "plugin/host/parameters.h"
#include "plugin/host/probes.h"
#include "plugin/host/start.h"
#include "plugin/host/tasks.h"
#include "plugin/host/turns.h"

#include <linux/moduleparam.h>

using namespace ktrace::plugin;
using namespace ktrace::plugin::host;

namespace {

constexpr const char *in_window = "--in-window";

struct CommandLine {
    Window window;
    int wire = -1, life = -1;
};

CommandLine read_arguments(int argc, char **argv) {
    CommandLine read;
    for (int i = 1; i + 1 < argc; i++) {
        std::string_view name = argv[i];
        if (name == "--window" && i + 2 < argc) {
            read.window.start = std::strtoull(argv[i + 1], nullptr, 0);
            read.window.size = std::strtoull(argv[i + 2], nullptr, 0);
        } else if (name == "--wire") {
            read.wire = std::atoi(argv[i + 1]);
        } else if (name == "--life") {
            read.life = std::atoi(argv[i + 1]);
        }
    }
    return read;
}

bool map_wire(int fd) {
    void *mapped = ::mmap(nullptr, pool_offset, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) return false;
    wire = static_cast<Wire *>(mapped);
    wire_fd = fd;
    return wire->version == wire_version;
}

int fail_start(const char *why) {
    std::snprintf(wire->text, sizeof wire->text, "%s", why);
    wire->result = -1;
    wire->pid = ::getpid();
    hand_over(Request::done);
    return 1;
}

/// When ktrace has gone, so does this.
void tie_life_to(int fd) {
    ::fcntl(fd, F_SETOWN, ::getpid());
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_ASYNC);
    char byte;
    if (::recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0) ::_exit(0);
}

using Function = int (*)();
using Procedure = void (*)();
Function init_function = nullptr;
Procedure exit_function = nullptr;

/// A symbol that a plugin itself defines; nullptr: none of that name. The C library has an init_module, too.
void *own_symbol(void *plugin, const char *name) {
    void *found = ::dlsym(plugin, name);
    Dl_info info{};
    void *own = nullptr, *definer = nullptr;
    const bool is_own = found && ::dlinfo(plugin, RTLD_DI_LINKMAP, &own) == 0 &&
                        ::dladdr1(found, &info, &definer, RTLD_DL_LINKMAP) != 0 && own == definer;
    return is_own ? found : nullptr;
}

long load(void *) {
    std::string path = reinterpret_cast<const char *>(wire->bulk);
    std::string parameters = reinterpret_cast<const char *>(wire->bulk) + path.size() + 1;
    void *plugin = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        std::snprintf(wire->text, sizeof wire->text, "%s", ::dlerror());
        return -1;
    }
    init_function = reinterpret_cast<Function>(own_symbol(plugin, "init_module"));
    exit_function = reinterpret_cast<Procedure>(own_symbol(plugin, "cleanup_module"));
    auto *about = static_cast<const ktrace_plugin *>(own_symbol(plugin, "ktrace_plugin"));
    std::string wrong;
    if (about && about->abi != KTRACE_PLUGIN_ABI)
        wrong = "it was built for another version of ktrace; build it again with ktrace plugin build";
    else if (!init_function)
        wrong = "it has no module_init";
    else
        wrong = set_parameters(about, parameters);
    if (wrong.empty()) return 0;
    std::snprintf(wire->text, sizeof wire->text, "%s", wrong.c_str());
    return -1;
}

long init(void *) { return init_function(); }

long leave(void *) {
    if (exit_function) exit_function();
    return 0;
}

Left serve(Call call) {
    switch (call) {
    case Call::load: return guarded(load, nullptr, nullptr);
    case Call::init: return guarded(init, nullptr, nullptr);
    case Call::exit: return guarded(leave, nullptr, nullptr);
    case Call::notes: return {};
    default: return run_handler(call);
    }
}

[[noreturn]] void serve_calls() {
    while (true) {
        wait_for_turn();
        take_notes();
        set_current(wire->pid, wire->tid);
        start_handler_clock(wire->now_ns);
        Left left = serve(static_cast<Call>(wire->kind));
        end_line();
        wire->ended = left.ended;
        wire->result = left.result;
        wire->count = left.by_return ? 1 : 0;
        hand_over(Request::done);
        // ktrace goes on meanwhile: it takes nothing from the pages but what is written there already.
        give_up_pages();
        forget_comms();
    }
}

} // namespace

int main(int argc, char **argv) {
    CommandLine arguments = read_arguments(argc, argv);
    window = arguments.window;
    if (!map_wire(arguments.wire)) return 1;
    bool started = argc > 1 && std::string_view(argv[1]) == in_window;
    if (!started) {
        const char *why = start_in(window, in_window, argc, argv);
        return fail_start(why);
    }
    if (!leave_old_places(window)) return fail_start("its old places cannot be given up");
    tie_life_to(arguments.life);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    install_guard();
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    wire->result = 0;
    wire->pid = ::getpid();
    hand_over(Request::done);
    serve_calls();
}
