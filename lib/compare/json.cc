#include "compare/json.h"

#include <nlohmann/json.hpp>

namespace ktrace::compare {

namespace {

/// Makes the tree of what the library reads.
class Builder : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit Builder(Json &whole) : next_(&whole) {}

    bool null() override { return put(Json::Kind::null, 0, {}); }
    bool boolean(bool value) override { return put(Json::Kind::boolean, value ? 1 : 0, {}); }
    bool number_integer(number_integer_t value) override {
        return put(Json::Kind::number, static_cast<double>(value), std::to_string(value));
    }
    bool number_unsigned(number_unsigned_t value) override {
        return put(Json::Kind::number, static_cast<double>(value), std::to_string(value));
    }
    bool number_float(number_float_t value, const string_t &text) override {
        return put(Json::Kind::number, value, text);
    }
    bool string(string_t &value) override { return put(Json::Kind::text, 0, std::move(value)); }
    bool binary(binary_t &) override { return false; }
    bool start_object(std::size_t) override { return begin(Json::Kind::object); }
    bool start_array(std::size_t) override { return begin(Json::Kind::list); }
    bool key(string_t &name) override {
        open_.back()->members.push_back({std::move(name), {}});
        next_ = &open_.back()->members.back().value;
        return true;
    }
    bool end_object() override { return end(); }
    bool end_array() override { return end(); }
    bool parse_error(std::size_t, const std::string &, const nlohmann::detail::exception &) override { return false; }

  private:
    static constexpr std::size_t most_depth = 100;

    Json &place() {
        if (next_) return *std::exchange(next_, nullptr);
        return open_.back()->list.emplace_back();
    }
    bool put(Json::Kind kind, double number, std::string text) {
        Json &json = place();
        json.kind = kind;
        json.number = number;
        json.text = std::move(text);
        return true;
    }
    bool begin(Json::Kind kind) {
        if (open_.size() == most_depth) return false;
        Json &json = place();
        json.kind = kind;
        open_.push_back(&json);
        return true;
    }
    bool end() {
        open_.pop_back();
        return true;
    }

    Json *next_;               // takes the next value; nullptr: a new element of the innermost list
    std::vector<Json *> open_; // objects and lists, the innermost last
};

} // namespace

const Json *Json::find(std::string_view name) const {
    for (const auto &[known, member] : members)
        if (known == name) return &member;
    return nullptr;
}

std::string Json::text_of(std::string_view name) const {
    const Json *member = find(name);
    return member ? member->text : std::string();
}

std::optional<double> Json::number_of(std::string_view name) const {
    const Json *member = find(name);
    if (!member || member->kind != Kind::number) return std::nullopt;
    return member->number;
}

std::optional<Json> parse_json(std::string_view text) {
    Json whole;
    Builder builder(whole);
    if (!nlohmann::json::sax_parse(text, &builder)) return std::nullopt;
    return whole;
}

} // namespace ktrace::compare
