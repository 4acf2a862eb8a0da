#include "symbols/names/demangle.h"

#include <algorithm>
#include <array>
#include <csetjmp>

#include <libiberty/demangle.h>

namespace ktrace::symbols {

namespace {

// libiberty refuses C++ names of more than 1,024 bytes unless its limit is lifted; then its recursion is as deep as the
// name is long, so this much is safe on a usual stack.
constexpr std::size_t longest_with_limit = 1024;
constexpr std::size_t longest_name = 4096;
// Substitutions can make the output exponentially longer than the name.
constexpr std::size_t longest_output = 65536;

/// The buffer that the demangler writes to. It can only be stopped by leaving it: it holds nothing on the heap while it
/// prints.
struct Output {
    std::string text;
    std::jmp_buf stop;
};

void append(const char *bytes, std::size_t size, void *opaque) {
    auto &output = *static_cast<Output *>(opaque);
    if (output.text.size() + size > longest_output) std::longjmp(output.stop, 1);
    output.text.append(bytes, size);
}

using Demangler = int (*)(const char *, int, demangle_callbackref, void *);

bool run(Demangler demangler, const char *mangled, int options, Output &output) {
    if (setjmp(output.stop) != 0) return false; // NOLINT(cert-err52-cpp)
    return demangler(mangled, options, append, &output) != 0;
}

constexpr std::array<std::string_view, 8> clone_words{"constprop", "isra",  "part", "lto_priv",
                                                      "llvm",      "clone", "cold", "localalias"};

/// The functions that a compiler makes of a coroutine of C++: gcc's, and clang's.
constexpr std::array<std::string_view, 4> coroutine_words{"actor", "destroy", "resume", "cleanup"};

template <std::size_t N> bool is_among(std::string_view word, const std::array<std::string_view, N> &words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_number(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Rust's v0 writes a function of a type as `<Type>::f`, legacy names and the source as `Type::f`.
void unwrap_type(std::string &name) {
    if (!name.starts_with('<')) return;
    int depth = 0;
    for (std::size_t i = 0; i < name.size(); i++) {
        if (depth == 1 && std::string_view(name).substr(i).starts_with(" as ")) return;
        if (name[i] == '<') depth++;
        if (name[i] != '>' || (i > 0 && name[i - 1] == '-') || --depth != 0) continue;
        name.erase(i, 1);
        name.erase(0, 1);
        return;
    }
}

} // namespace

bool is_mangled(std::string_view name) { return name.starts_with("_Z") || name.starts_with("_R"); }

std::optional<std::string> demangle(std::string_view name, Spelling spelling) {
    if (!is_mangled(name) || name.size() > longest_name) return std::nullopt;
    const std::string mangled(name);
    Output output;
    output.text.reserve(2 * name.size());
    int options = name.size() > longest_with_limit ? DMGL_NO_RECURSE_LIMIT : DMGL_NO_OPTS;
    if (spelling == Spelling::signature) options |= DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP;
    // Legacy Rust names are C++ names with a hash for their last part: Rust is asked first.
    if (run(rust_demangle_callback, mangled.c_str(), DMGL_NO_OPTS, output)) {
        if (name.starts_with("_R")) unwrap_type(output.text);
        return std::move(output.text);
    }
    output.text.clear();
    if (run(cplus_demangle_v3_callback, mangled.c_str(), options, output)) return std::move(output.text);
    return std::nullopt;
}

CloneName split_clone(std::string_view name) {
    CloneName clone{.base = name, .suffix = {}};
    std::size_t end = name.size();
    while (true) {
        // Numbers first (.0), then the word before them (.constprop).
        std::size_t at = name.substr(0, end).rfind('.');
        while (at != std::string_view::npos && at != 0 && is_number(name.substr(at + 1, end - at - 1))) {
            end = at;
            at = name.substr(0, end).rfind('.');
        }
        if (at == std::string_view::npos || at == 0) break;
        std::string_view word = name.substr(at + 1, end - at - 1);
        const bool of_coroutine = name.starts_with("_Z") && is_among(word, coroutine_words);
        if (!of_coroutine && !is_among(word, clone_words)) break;
        clone.cold = clone.cold || word == "cold";
        clone.part = clone.part || word == "part" || of_coroutine;
        clone.of_coroutine = clone.of_coroutine || of_coroutine;
        clone.base = name.substr(0, at);
        clone.suffix = name.substr(at);
        end = at;
    }
    return clone;
}

} // namespace ktrace::symbols
