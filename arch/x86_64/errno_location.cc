// __errno_location is, behind an endbr64 perhaps, two instructions that add the thread pointer and the offset in rax,
// in either order, and a return:
//
//     mov rax, [rip + SLOT] or IMM    mov rax, fs:0
//     add rax, fs:0                   add rax, IMM, or [rip + SLOT], or lea rax, [rax + IMM]
//     ret                             ret
#include "x86_64/errno_location.h"

#include <cstring>
#include <initializer_list>

namespace ktrace::arch {

namespace {

using Bytes = std::span<const std::byte>;

/// Reads code from the front.
class Reader {
  public:
    Reader(Bytes code, VirtAddr at) : code_(code), at_(at) {}

    /// Takes these bytes; false: there are others.
    bool take(std::initializer_list<unsigned> bytes) {
        std::size_t i = 0;
        if (code_.size() < bytes.size()) return false;
        for (unsigned byte : bytes)
            if (code_[i++] != static_cast<std::byte>(byte)) return false;
        skip(bytes.size());
        return true;
    }
    /// A signed number; nothing: the code ends.
    template <class T> std::optional<std::int64_t> number() {
        T value = 0;
        if (code_.size() < sizeof value) return std::nullopt;
        std::memcpy(&value, code_.data(), sizeof value);
        skip(sizeof value);
        return value;
    }
    VirtAddr at() const { return at_; }

  private:
    void skip(std::size_t bytes) {
        code_ = code_.subspan(bytes);
        at_ = VirtAddr{at_.value + bytes};
    }

    Bytes code_;
    VirtAddr at_;
};

std::optional<ErrnoOffset> constant(std::optional<std::int64_t> number) {
    if (!number) return std::nullopt;
    return ErrnoOffset{*number, {}};
}

/// Of an address that counts from behind the instruction, which it ends.
std::optional<ErrnoOffset> in_slot(Reader &code) {
    auto distance = code.number<std::int32_t>();
    if (!distance) return std::nullopt;
    return ErrnoOffset{0, VirtAddr{code.at().value + static_cast<std::uint64_t>(*distance)}};
}

std::optional<ErrnoOffset> loaded(Reader &code) {
    if (code.take({0x48, 0x8b, 0x05})) return in_slot(code);                         // mov rax, [rip + d]
    if (code.take({0x48, 0xc7, 0xc0})) return constant(code.number<std::int32_t>()); // mov rax, imm32
    return std::nullopt;
}

std::optional<ErrnoOffset> added(Reader &code) {
    if (code.take({0x48, 0x03, 0x05})) return in_slot(code); // add rax, [rip + d]
    if (code.take({0x48, 0x05}) || code.take({0x48, 0x81, 0xc0}) || code.take({0x48, 0x8d, 0x80}))
        return constant(code.number<std::int32_t>()); // add rax, imm32; lea rax, [rax + d32]
    if (code.take({0x48, 0x83, 0xc0}) || code.take({0x48, 0x8d, 0x40})) return constant(code.number<std::int8_t>());
    const bool subtracts = code.take({0x48, 0x2d});
    auto less = subtracts ? code.number<std::int32_t>() : std::nullopt; // sub rax, imm32
    return less ? constant(-*less) : std::nullopt;
}

} // namespace

std::optional<ErrnoOffset> X86_64Errno::offset(Bytes bytes, VirtAddr at) {
    Reader code(bytes, at);
    code.take({0xf3, 0x0f, 0x1e, 0xfa}); // endbr64
    std::optional<ErrnoOffset> found;
    if (code.take({0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0})) { // mov rax, fs:0
        found = added(code);
    } else {
        found = loaded(code);
        if (!code.take({0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0})) return std::nullopt; // add rax, fs:0
    }
    return code.take({0xc3}) ? found : std::nullopt;
}

} // namespace ktrace::arch
