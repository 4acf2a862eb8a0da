// Variant: which of a type's variants is there, by the discriminant in the object's bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "value/type.h"

namespace ktrace::value {

/// The index in `type.variants` of the one that an object is; nullopt: it has none, or the bytes do not say it.
inline std::optional<std::size_t> active_variant(const Type &type, std::span<const std::byte> object) {
    const std::uint64_t size = type.discriminant != nullptr ? type.discriminant->size : 0;
    std::uint64_t value = 0;
    if (size > sizeof value || type.discriminant_offset + size > object.size()) return std::nullopt;
    if (size != 0) std::memcpy(&value, object.data() + type.discriminant_offset, size);
    std::optional<std::size_t> otherwise;
    for (std::size_t i = 0; i < type.variants.size(); ++i) {
        const Variant &variant = type.variants[i];
        if (!variant.value)
            otherwise = i;
        else if (((*variant.value ^ value) << (64 - 8 * std::max<std::uint64_t>(size, 1))) == 0)
            return i;
    }
    return otherwise;
}

} // namespace ktrace::value
