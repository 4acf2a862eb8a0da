#include "base/log.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/text.h"

namespace ktrace::log {

namespace {

spdlog::level::level_enum to_spdlog(Level level) {
    switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warn: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
    }
    return spdlog::level::err;
}

using Threshold = spdlog::level::level_enum;

std::map<std::string, Threshold, std::less<>> &thresholds() {
    static std::map<std::string, Threshold, std::less<>> table;
    return table;
}

/// Of a folder: its own, that of the nearest one above it, that of all.
Threshold threshold_of(std::string_view folder) {
    for (std::string_view name = folder; !name.empty(); name = name.substr(0, name.rfind('/'))) {
        if (auto found = thresholds().find(name); found != thresholds().end()) return found->second;
        if (name.find('/') == std::string_view::npos) break;
    }
    auto all = thresholds().find("all");
    return all == thresholds().end() ? Threshold::warn : all->second;
}

void note_least_shown() {
    Level least = Level::warn;
    for (const auto &[folder, threshold] : thresholds())
        for (Level level : {Level::debug, Level::info})
            if (to_spdlog(level) >= threshold) least = std::min(least, level);
    least_shown = least;
}

} // namespace

void configure_from_environment() {
    const char *setting = std::getenv("KTRACE_LOG");
    if (!setting) return;
    for (std::string_view part : text::split(setting, ',')) {
        std::size_t colon = part.find(':');
        std::string name(colon == std::string_view::npos ? "debug" : part.substr(colon + 1));
        const auto level = spdlog::level::from_str(name);
        if (level == spdlog::level::off && name != "off") // what from_str makes of a word that it does not know
            KT_LOG_WARN("KTRACE_LOG: there is no level `" + text::escape(name) + "': debug, info, warn, error or off");
        else
            thresholds()[std::string(part.substr(0, colon))] = level;
    }
    note_least_shown();
}

void show_all() {
    thresholds().try_emplace("all", Threshold::debug);
    note_least_shown();
}

bool is_shown(std::string_view folder, Level level) { return to_spdlog(level) >= threshold_of(folder); }

void write(std::string_view folder, Level level, std::string_view message) {
    static const std::shared_ptr<spdlog::logger> logger = [] {
        auto made = std::make_shared<spdlog::logger>("ktrace", std::make_shared<spdlog::sinks::stderr_sink_st>());
        made->set_level(spdlog::level::trace);
        made->set_pattern("%v");
        return made;
    }();
    logger->log(to_spdlog(level), "ktrace[{}]: {}", folder, message);
}

} // namespace ktrace::log
