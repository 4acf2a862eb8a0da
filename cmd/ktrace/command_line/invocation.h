// Invocation: one command line of ktrace, read and checked, as plain data.
#pragma once

#include <string>
#include <vector>

#include "sample/profile.h"
#include "trace/config.h"

namespace ktrace::cli {

/// The commands. The values are bits: an option belongs to a set of commands.
enum class Command : unsigned {
    none = 0,
    attach = 1,
    run = 2,
    list = 4,
    ctl = 8,
    bench = 16,
    repair = 32,
    plugin = 64,
    doctor = 128,
    stack = 256,
    profile = 512,
    diff = 1024,
};

/// `ktrace list`: what can be probed in a process or a file.
struct ListRequest {
    pid_t pid = 0;       // 0: `file`
    std::string file;    // an ELF file
    std::string pattern; // empty: everything
    bool lines = false;
    bool inlines = false;
};

/// An option as it was given on the command line.
struct GivenOption {
    std::string name; // long, without dashes
    std::string value;
};

/// An option inside a probe's quotes.
struct OwnOption {
    std::string name; // long, without dashes
    std::string value;
    std::size_t at = 0; // of the value in the quoted text
};

/// A probe as it stood in its quotes: SPEC and options of its own.
struct QuotedProbe {
    std::string text;
    std::string spec;
    std::vector<OwnOption> options;
    std::size_t probe = 0; // index in config.probes
};

struct Invocation {
    Command command = Command::none;
    bool help = false; // of `command`, or of ktrace as a whole
    bool version = false;
    std::vector<std::string> processes; // of -p: numbers and names, as given
    trace::Config config;               // attach, run
    ListRequest list;                   // list
    sample::ProfileRequest profile;     // profile
    trace::Order order;                 // ctl
    std::vector<std::string> words;     // all of the command line behind the command and in front of --
    std::vector<GivenOption> given;     // the options, in order
    std::vector<QuotedProbe> quoted;    // the probes that have options of their own
    std::vector<std::string> operands;  // what is no option, as given
};

} // namespace ktrace::cli
