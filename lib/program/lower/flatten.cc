// The image of a Code: the header, then each array behind what it names.
#include <cstring>

#include "base/check.h"
#include "program/lower/code.h"
#include "program/lower/fuse.h"

namespace ktrace::program {

namespace {

class Flattener {
  public:
    std::vector<std::byte> image(const Code &code);

  private:
    template <class T> Array<T> put(const T *from, std::size_t count) {
        bytes_.resize((bytes_.size() + image_alignment - 1) / image_alignment * image_alignment);
        std::size_t at = bytes_.size(), size = count * sizeof(T);
        KT_CHECK(at + size <= UINT32_MAX);
        bytes_.resize(at + size);
        if (size != 0) std::memcpy(bytes_.data() + at, from, size);
        return {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(count)};
    }
    template <class T> Array<T> put(const std::vector<T> &all) { return put(all.data(), all.size()); }
    Part put(const Instrs &code) {
        const Instrs all = fuse(code);
        return put(all.data(), all.size());
    }
    Array<Part> put(const std::vector<Instrs> &parts);
    Array<Array<std::byte>> put(const std::vector<std::string> &constants);
    MomentImage moment(const MomentCode &code);

    std::vector<std::byte> bytes_ = std::vector<std::byte>(sizeof(ImageHeader));
};

Array<Part> Flattener::put(const std::vector<Instrs> &parts) {
    std::vector<Part> all;
    for (const Instrs &part : parts) all.push_back(put(part));
    return put(all);
}

Array<Array<std::byte>> Flattener::put(const std::vector<std::string> &constants) {
    std::vector<Array<std::byte>> all;
    for (const std::string &constant : constants)
        all.push_back(put(reinterpret_cast<const std::byte *>(constant.data()), constant.size()));
    return put(all);
}

MomentImage Flattener::moment(const MomentCode &code) {
    MomentImage made{code, {}, {}, {}, {}, {}};
    made.condition = put(code.condition);
    made.key = put(code.key);
    made.value = put(code.value);
    made.injections = put(code.injections);
    made.body = put(code.body);
    return made;
}

std::vector<std::byte> Flattener::image(const Code &code) {
    ImageHeader header;
    header.payload_limit = static_cast<std::uint32_t>(code.payload_limit);
    header.capture_fixed = static_cast<std::uint32_t>(code.capture_fixed);
    header.capture_size = static_cast<std::uint32_t>(code.capture_size);
    if (code.selection_at) header.selection_at = static_cast<std::uint32_t>(*code.selection_at);
    for (std::size_t m = 0; m < moments; ++m) header.at[m] = moment(code.at[m]);
    header.constants = put(code.constants);
    header.destinations = put(code.destinations);
    header.size = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &header, sizeof header);
    return std::move(bytes_);
}

} // namespace

std::vector<std::byte> flatten(const Code &code) { return Flattener().image(code); }

} // namespace ktrace::program
