// Config: what a command asks of a session, as plain data. cmd/ fills it in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/probe.h"

namespace ktrace::trace {

/// --plugin 'FILE.so name=value…'
struct PluginRequest {
    std::string path, parameters;
};

/// --expect
struct Expectation {
    std::string text;
    std::uint32_t probe = 0; // the number of the one that it is for; 0: all that it fits
};

struct Config {
    std::vector<pid_t> pids;          // attach
    std::vector<std::string> program; // run: PROGRAM [ARG…]
    std::string program_hint;         // run: for the error that there is no such program; empty: none
    std::vector<probe::Probe> probes; // in the order given, numbered from 1
    std::vector<PluginRequest> plugins;
    probe::Actions actions;
    bool allow_missing = false;
    bool follow = false;
    bool lossless = false; // a thread waits for room for its events, however long ktrace does not run
    bool quiet = false;
    int verbose = 0;
    std::optional<std::uint64_t> duration_ns;
    std::optional<std::uint64_t> max_events;
    std::optional<double> max_overhead; // a share, above 0 and up to 1, of a thread's time
    std::string output;                 // -o FILE, empty: standard output
    enum class Engine : std::uint8_t {
        automatic, // traps become jumps where that can be
        trap,
        jump, // likewise, and those that cannot are an error
    } engine = Engine::automatic;
    enum class Format : std::uint8_t { text, json, csv, folded, chrome } format = Format::text;
    std::optional<std::uint64_t> interval_ns; // tables while it runs, too
    std::string sort;                         // of tables: a column; empty: total, else count
    std::optional<std::size_t> top;           // of tables: so many rows, and the rest as one
    bool exact_times = false;                 // times are whole ns
    std::vector<Expectation> expectations;
    std::string report; // --report FILE; empty: none
};

/// An order of `ktrace ctl` to a ktrace that traces.
struct Order {
    enum class Verb : std::uint8_t { list, stats, add, remove, enable, disable, on, off } verb = Verb::list;
    std::vector<std::string> names;   // remove, enable, disable: numbers or SPECs
    std::vector<probe::Probe> probes; // add; their numbers are given later
    probe::Actions actions;
    bool allow_missing = false;
    Config::Format format = Config::Format::text; // stats
    bool verbose = false;                         // list
};

} // namespace ktrace::trace
