// Walks over values within values: nodes and groups of them (node.cc), bytes by their type (render.cc).
// `depth`: in how many others a value stands.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "output/render.h"

namespace ktrace::output {

/// The parts of an object that have nodes of their own, as Form::object has them.
struct Parts {
    const std::byte *begin = nullptr; // of the object's bytes
    std::vector<std::pair<std::uint64_t, program::Node>> nodes;

    /// That of the part of `type` whose bytes begin at `at`; nullptr: it has none.
    const program::Node *find(const value::Type &type, const std::byte *at) const {
        return find(static_cast<std::uint64_t>(at - begin) | std::uint64_t{type.index} << 32);
    }
    const program::Node *find_virtual(const value::Type &base) const {
        return find(program::of_virtual_base | std::uint64_t{base.index} << 32);
    }

  private:
    const program::Node *find(std::uint64_t key) const {
        for (const auto &[each, node] : nodes)
            if (each == key) return &node;
        return nullptr;
    }
};

/// The type of a node; a location may know fewer types than a damaged record names.
const value::Type &type_of(const program::Node &node, const Context &context);

/// `context`: nullptr: there are no names of addresses.
template <class Notation>
void append_value(std::string &out, const value::Type &type, std::span<const std::byte> bytes,
                  const ValueLimits &limits, int depth, const Context *context, const Parts *parts);
template <class Notation>
void append_node(std::string &out, const program::Node &node, const Context &context, int depth);

} // namespace ktrace::output
