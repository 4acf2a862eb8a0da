#include "compare/run.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/text.h"
#include "compare/json.h"
#include "output/notation.h"

namespace ktrace::compare {

namespace {

/// A frame of a stack by its function: addresses are others in each run.
std::string frame_text(const Json &frame) {
    if (const std::string symbol = frame.text_of("symbol"); !symbol.empty()) return symbol;
    const std::string vaddr = frame.text_of("vaddr");
    return vaddr.empty() ? frame.text_of("addr") : frame.text_of("module") + '+' + vaddr;
}

bool is_stack(const Json &key) {
    return key.kind == Json::Kind::list && !key.list.empty() && key.list[0].kind == Json::Kind::object &&
           key.list[0].find("addr");
}

std::string key_text(const Json &key) {
    std::string text;
    switch (key.kind) {
    case Json::Kind::null: return "-";
    case Json::Kind::boolean: return key.number != 0 ? "true" : "false";
    case Json::Kind::number:
    case Json::Kind::text: return key.text;
    case Json::Kind::object:
        for (const auto &[name, member] : key.members)
            text += (text.empty() ? "{" : ", ") + name + '=' + key_text(member);
        return text + '}';
    case Json::Kind::list: break;
    }
    for (const Json &part : key.list) {
        if (!text.empty()) text += is_stack(key) ? " < " : "  ";
        text += is_stack(key) ? frame_text(part) : key_text(part);
    }
    return text;
}

/// Of the line itself, so that it stays as it was.
std::string symbol_of(const Json &row) {
    const std::string symbol = row.text_of("symbol"), which = row.text_of("which");
    if (symbol.empty()) return row.text_of("address");
    if (!which.empty()) return which.starts_with(symbol) ? which : symbol + ' ' + which;
    const double offset = row.number_of("offset").value_or(0);
    return offset == 0 ? symbol : fmt::format("{}+{:#x}", symbol, static_cast<std::uint64_t>(offset));
}

expect::Figures figures_of(const Json &row) {
    expect::Figures figures;
    if (auto count = row.number_of("count")) figures["count"] = {*count, 0, false};
    if (const Json *ranges = row.find("hist")) {
        double count = 0;
        for (const Json &range : ranges->list) count += range.number_of("count").value_or(0);
        figures["count"] = {count, 0, false};
    }
    const Json *stats = row.find("stats");
    if (!stats) return figures;
    const Json *errors = stats->find("error");
    const bool is_time = stats->find("self");
    for (const auto &[name, value] : stats->members) {
        if (value.kind != Json::Kind::number) continue;
        const bool is_count = name == "count";
        figures[name] = {value.number, errors ? errors->number_of(name).value_or(0) : 0, is_time && !is_count};
    }
    return figures;
}

} // namespace

Result<Run> parse_run(std::string_view text, const std::string &name) {
    Run run;
    std::size_t number = 0;
    for (std::string_view line : text::split(text, '\n')) {
        number++;
        if (text::trim(line).empty()) continue;
        auto object = parse_json(line);
        if (!object || object->kind != Json::Kind::object)
            return fail(Error::Kind::refused, fmt::format("{}: line {} is no JSON object", name, number),
                        "ktrace writes such a file with --format json");
        const std::string type = object->text_of("type"), module = object->text_of("module");
        if (type == "summary")
            run.lost[{module, symbol_of(*object)}] += static_cast<std::uint64_t>(
                object->number_of("missed").value_or(0) + object->number_of("dropped").value_or(0));
        if (type != "row" || object->find("interval")) continue;
        const Json *key = object->find("key");
        RunRow row{figures_of(*object), {}};
        if (key) output::append_json_string(row.key_json, key_text(*key));
        run.rows[{module, symbol_of(*object), object->text_of("kind"), key ? key_text(*key) : std::string()}] =
            std::move(row);
    }
    if (run.rows.empty())
        return fail(Error::Kind::refused, name + " has no row of a table",
                    "--format json writes them, with --count, --stats or --hist");
    return run;
}

Result<Run> read_run(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return fail(errno == ENOENT ? Error::Kind::not_found : Error::Kind::denied,
                    path + " cannot be read: " + std::strerror(errno));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return parse_run(text, path);
}

} // namespace ktrace::compare
