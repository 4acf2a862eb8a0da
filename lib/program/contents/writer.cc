#include "program/contents/writer.h"

#include <algorithm>
#include <charconv>

namespace ktrace::program::contents {

using value::Member;
using value::Type;

namespace {

constexpr int deepest_member = 12;

std::optional<Found> find_within(const Type &type, std::string_view name, std::optional<Type::Kind> of, int depth) {
    for (const Member &member : type.members) {
        if (member.is_static || member.type == nullptr) continue;
        if (member.name == name && (!of || member.type->kind == *of)) return Found{member.offset, member.type};
        if (depth == 0) continue;
        if (auto inner = find_within(*member.type, name, of, depth - 1))
            return Found{inner->offset + member.offset, inner->type};
    }
    return std::nullopt;
}

} // namespace

std::optional<Found> find(const Type &type, std::string_view name, std::optional<Type::Kind> of) {
    return find_within(type, name, of, deepest_member);
}

std::optional<std::uint64_t> offset_of(const Type &type, std::initializer_list<std::string_view> path) {
    Found at{0, &type};
    for (std::string_view name : path) {
        auto next = find(*at.type, name);
        if (!next) return std::nullopt;
        at = {at.offset + next->offset, next->type};
    }
    return at.offset;
}

std::uint64_t alignment_of(const Type &type) {
    if (type.alignment != 0) return type.alignment;
    std::uint64_t largest = 1;
    switch (type.kind) {
    case Type::Kind::structure:
    case Type::Kind::union_:
        if (type.members.empty() && type.size != 0 && type.size % 8 == 0) return 8; // only declared
        for (const Member &member : type.members)
            if (!member.is_static && member.type) largest = std::max(largest, alignment_of(*member.type));
        return largest;
    case Type::Kind::array: return type.target ? alignment_of(*type.target) : 1;
    case Type::Kind::complex: return std::min<std::uint64_t>(16, std::max<std::uint64_t>(1, type.size / 2));
    default: return size_of(type) == 0 ? (is_known(type) ? 8 : 1) : std::min<std::uint64_t>(16, size_of(type));
    }
}

std::uint64_t aligned(std::uint64_t offset, const Type &type) {
    const std::uint64_t to = is_known(type) && type.incomplete ? 8 : alignment_of(type);
    return (offset + to - 1) / to * to;
}

std::string family(const Type &type) {
    std::string_view name = type.alias_of ? type.alias_of->name : type.name;
    const std::size_t open = name.find('<');
    if (open != std::string_view::npos) {
        if (!name.ends_with('>') || name.substr(open).find(">::") != std::string_view::npos) {
            int level = 0; // a member of the class, or a class whose arguments have such members?
            for (std::size_t i = open; i + 1 < name.size(); ++i) {
                level += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
                if (level == 0) return {};
            }
        }
        name = name.substr(0, open);
    }
    std::string plain(name);
    for (std::string_view inner : {"__cxx11::", "__1::"})
        if (const std::size_t at = plain.find(inner); at != std::string::npos && plain.starts_with("std::"))
            plain.erase(at, inner.size());
    return plain;
}

std::optional<std::uint64_t> last_number(std::string_view name) {
    const std::size_t comma = name.rfind(',');
    if (comma == std::string_view::npos) return std::nullopt;
    name.remove_prefix(comma + 1);
    while (name.starts_with(' ')) name.remove_prefix(1);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc{} || end == name.data()) return std::nullopt;
    return number;
}

void Writer::check_count(int depth) {
    put(Opcode::dup);
    push(largest_count);
    put(Opcode::swap);
    put(Opcode::lt_u);
    const std::size_t is_count = jump(Opcode::jump_false);
    put(Opcode::drop);
    put(Opcode::push_unavailable, unavailable_not_known);
    land(is_count);
    check(depth);
}

void Writer::finish() {
    if (failures_.empty()) return;
    std::vector<std::size_t> done{jump(Opcode::jump)};
    std::stable_sort(failures_.begin(), failures_.end(),
                     [](const auto &a, const auto &b) { return a.second < b.second; });
    for (std::size_t i = 0; i < failures_.size();) {
        const int depth = failures_[i].second;
        for (; i < failures_.size() && failures_[i].second == depth; ++i) land(failures_[i].first);
        put(Opcode::emit_hex); // shows why it is bad
        for (int n = 1; n < depth; ++n) put(Opcode::drop);
        if (i < failures_.size()) done.push_back(jump(Opcode::jump));
    }
    for (std::size_t each : done) land(each);
}

void Writer::show_sequence(const Type &element) {
    show_each(
        Form::list, 2, [&] { show(element); }, [&] { add(size_of(element)); });
}

void Writer::finish_or_nothing(std::size_t is_empty) {
    const std::size_t done = jump(Opcode::jump);
    land(is_empty);
    put(Opcode::drop);
    begin(Form::nothing);
    end();
    land(done);
    finish();
}

} // namespace ktrace::program::contents
