// Diagnostics for developers: one line on standard error, `ktrace[FOLDER]: message`. Not for users: that is output/.
// KTRACE_LOG=engine:debug,symbols:info says which are shown; a folder stands for those below it, too.
//
// Invariant: a message that is not shown costs a load and a comparison: its text is not made.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ktrace::log {

enum class Level : std::uint8_t { debug, info, warn, error };

/// Reads KTRACE_LOG; without it only warnings and errors are shown. Warns of a level that there is not. To be called
/// before there are threads, as show_all.
void configure_from_environment();

/// Shows the messages of all folders that KTRACE_LOG does not name.
void show_all();

/// Where a source file is at home: its folder below lib/ (`engine/hit`), or with arch/, cmd/ or tests/ before it.
consteval std::string_view folder_of(std::string_view file) {
    const std::string_view folder = file.substr(0, file.rfind('/'));
    std::size_t begin = 0;
    for (const std::string_view root : {"/lib/", "/arch/", "/cmd/", "/tests/"}) {
        const std::size_t at = file.rfind(root);
        if (at != file.npos && at >= begin) begin = root == "/lib/" ? at + root.size() : at + 1;
    }
    return folder.substr(begin);
}
static_assert(folder_of("/lib/ktrace/lib/engine/hit/dispatch.cc") == "engine/hit");
static_assert(folder_of("../cmd/ktrace/main.cc") == "cmd/ktrace");

/// The least level that any folder shows.
inline constinit std::atomic<Level> least_shown = Level::warn;

/// Is a message of this folder and level shown?
bool is_shown(std::string_view folder, Level level);

/// Shows it.
void write(std::string_view folder, Level level, std::string_view message);

} // namespace ktrace::log

// Is a message of this file and level shown?
#define KT_LOG_SHOWS(level)                                                                                            \
    (level >= ::ktrace::log::least_shown.load(std::memory_order_relaxed) &&                                            \
     ::ktrace::log::is_shown(::ktrace::log::folder_of(__FILE__), level))

// KT_LOG_DEBUG(text) and so on, by level; `text` is evaluated where it is shown.
#define KT_LOG(level, text)                                                                                            \
    do {                                                                                                               \
        if (KT_LOG_SHOWS(level)) [[unlikely]]                                                                          \
            ::ktrace::log::write(::ktrace::log::folder_of(__FILE__), level, text);                                     \
    } while (0)
#define KT_LOG_DEBUG(text) KT_LOG(::ktrace::log::Level::debug, text)
#define KT_LOG_INFO(text) KT_LOG(::ktrace::log::Level::info, text)
#define KT_LOG_WARN(text) KT_LOG(::ktrace::log::Level::warn, text)
#define KT_LOG_ERROR(text) KT_LOG(::ktrace::log::Level::error, text)
