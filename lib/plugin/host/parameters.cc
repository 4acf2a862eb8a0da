#include "plugin/host/parameters.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <linux/moduleparam.h>

namespace ktrace::plugin::host {

namespace {

struct Given {
    std::string name, value;
    bool has_value = false;
};

/// The next word up to a space outside of quotes; the quotes go.
Given next(std::string_view &rest) {
    Given given;
    bool quoted = false;
    for (; !rest.empty() && (quoted || (rest[0] != ' ' && rest[0] != '\t')); rest.remove_prefix(1)) {
        char c = rest[0];
        if (c == '"')
            quoted = !quoted;
        else if (c == '=' && !given.has_value)
            given.has_value = true;
        else
            (given.has_value ? given.value : given.name) += c;
    }
    return given;
}

template <class T> bool store(void *into, const std::string &value, bool is_signed) {
    char *end = nullptr;
    errno = 0;
    if (value.empty()) return false;
    T stored;
    if (is_signed) {
        long long number = std::strtoll(value.c_str(), &end, 0);
        stored = static_cast<T>(number);
        if (static_cast<long long>(stored) != number) return false;
    } else {
        if (value[0] == '-') return false;
        unsigned long long number = std::strtoull(value.c_str(), &end, 0);
        stored = static_cast<T>(number);
        if (static_cast<unsigned long long>(stored) != number) return false;
    }
    if (*end != 0 || errno == ERANGE) return false;
    std::memcpy(into, &stored, sizeof stored);
    return true;
}

bool store_bool(void *into, std::size_t size, const Given &given, bool inverted) {
    char first = given.has_value && !given.value.empty() ? given.value[0] : 'y'; // a name alone sets it
    bool on = std::strchr("yY1", first) != nullptr;
    if (!on && !std::strchr("nN0", first)) return false;
    if (inverted) on = !on;
    int as_int = on;
    if (size == sizeof as_int)
        std::memcpy(into, &as_int, sizeof as_int);
    else
        std::memcpy(into, &on, sizeof on);
    return true;
}

bool store_one(const kernel_param &param, void *into, const Given &given) {
    const std::string &value = given.value;
    switch (param.type) {
    case ktrace_param_byte: return store<unsigned char>(into, value, false);
    case ktrace_param_short: return store<short>(into, value, true);
    case ktrace_param_ushort: return store<unsigned short>(into, value, false);
    case ktrace_param_int: return store<int>(into, value, true);
    case ktrace_param_uint: return store<unsigned>(into, value, false);
    case ktrace_param_long: return store<long>(into, value, true);
    case ktrace_param_ulong: return store<unsigned long>(into, value, false);
    case ktrace_param_ullong: return store<unsigned long long>(into, value, false);
    case ktrace_param_charp: {
        char *copy = ::strdup(value.c_str()); // for as long as the plugin lives
        std::memcpy(into, &copy, sizeof copy);
        return copy != nullptr;
    }
    case ktrace_param_bool: return store_bool(into, param.size, given, false);
    case ktrace_param_invbool: return store_bool(into, param.size, given, true);
    case ktrace_param_string:
        if (value.size() + 1 > param.size) return false;
        std::memcpy(into, value.c_str(), value.size() + 1);
        return true;
    }
    return false;
}

bool store_array(const kernel_param &param, const Given &given) {
    unsigned stored = 0;
    std::string_view rest = given.value;
    while (true) {
        std::size_t comma = rest.find(',');
        Given one{given.name, std::string(rest.substr(0, comma)), true};
        if (stored == param.elements) return false;
        if (!store_one(param, static_cast<char *>(param.arg) + std::size_t{stored} * param.size, one)) return false;
        stored++;
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    if (param.count) *param.count = stored;
    return true;
}

std::string known_names(const std::vector<const kernel_param *> &params) {
    std::string names;
    for (const kernel_param *param : params) names += (names.empty() ? "" : ", ") + std::string(param->name);
    return names.empty() ? "it has none" : "it has " + names;
}

std::string set_one(const std::vector<const kernel_param *> &params, const Given &given) {
    for (const kernel_param *param : params) {
        if (given.name != param->name) continue;
        bool is_flag = param->type == ktrace_param_bool || param->type == ktrace_param_invbool;
        if (!given.has_value && !is_flag) return "parameter " + given.name + " needs a value: " + given.name + "=...";
        bool stored = param->elements != 0 ? store_array(*param, given) : store_one(*param, param->arg, given);
        return stored ? "" : "parameter " + given.name + " cannot be `" + given.value + "'";
    }
    return "there is no parameter " + given.name + "; " + known_names(params);
}

} // namespace

std::string set_parameters(const ktrace_plugin *plugin, std::string_view given) {
    std::vector<const kernel_param *> params;
    if (plugin && plugin->params) {
        auto *at = reinterpret_cast<const char *>(plugin->params);
        auto *end = reinterpret_cast<const char *>(plugin->params_end);
        for (; at < end; at += plugin->param_size) params.push_back(reinterpret_cast<const kernel_param *>(at));
    }
    while (true) {
        while (!given.empty() && (given[0] == ' ' || given[0] == '\t')) given.remove_prefix(1);
        if (given.empty()) return {};
        std::string wrong = set_one(params, next(given));
        if (!wrong.empty()) return wrong;
    }
}

} // namespace ktrace::plugin::host
