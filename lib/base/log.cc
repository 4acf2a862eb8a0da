#include "base/log.h"

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

std::map<std::string, spdlog::level::level_enum, std::less<>> &levels() {
    static std::map<std::string, spdlog::level::level_enum, std::less<>> table;
    return table;
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
            write("log", Level::warn,
                  "KTRACE_LOG: there is no level `" + text::escape(name) + "': debug, info, warn, error or off");
        else
            levels()[std::string(part.substr(0, colon))] = level;
    }
}

void show_all() { levels().try_emplace("all", spdlog::level::debug); }

bool enabled(std::string_view category, Level level) {
    auto found = levels().find(category);
    if (found == levels().end()) found = levels().find("all");
    auto threshold = found == levels().end() ? spdlog::level::warn : found->second;
    return to_spdlog(level) >= threshold;
}

void write(std::string_view category, Level level, std::string_view message) {
    if (!enabled(category, level)) return;
    static const std::shared_ptr<spdlog::logger> logger = [] {
        auto made = std::make_shared<spdlog::logger>("ktrace", std::make_shared<spdlog::sinks::stderr_sink_st>());
        made->set_level(spdlog::level::trace);
        made->set_pattern("%v");
        return made;
    }();
    logger->log(to_spdlog(level), "ktrace[{}]: {}", category, message);
}

} // namespace ktrace::log
