// A program run under ptrace (dwarf_stopped.h), and a plain evaluator of places.
#include "dwarf_stopped.h"

#include <algorithm>
#include <cstring>

#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

namespace ktrace::symbols::test {

using value::Op;
using value::Piece;
using value::Place;

namespace {

std::optional<std::uint64_t> binary(Op::Code code, std::uint64_t a, std::uint64_t b) {
    auto sa = static_cast<std::int64_t>(a), sb = static_cast<std::int64_t>(b);
    switch (code) {
    case Op::Code::and_: return a & b;
    case Op::Code::or_: return a | b;
    case Op::Code::xor_: return a ^ b;
    case Op::Code::plus: return a + b;
    case Op::Code::minus: return a - b;
    case Op::Code::mul: return a * b;
    case Op::Code::div: return sb == 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(sa / sb));
    case Op::Code::mod: return b == 0 ? std::nullopt : std::optional(a % b);
    case Op::Code::shl: return b > 63 ? 0 : a << b;
    case Op::Code::shr: return b > 63 ? 0 : a >> b;
    case Op::Code::shra: return static_cast<std::uint64_t>(sa >> std::min<std::uint64_t>(b, 63));
    case Op::Code::eq: return sa == sb;
    case Op::Code::ne: return sa != sb;
    case Op::Code::ge: return sa >= sb;
    case Op::Code::gt: return sa > sb;
    case Op::Code::le: return sa <= sb;
    case Op::Code::lt: return sa < sb;
    default: return std::nullopt;
    }
}

} // namespace

std::optional<std::uint64_t>
run_ops(const std::vector<Op> &ops, const std::function<std::optional<std::uint64_t>(unsigned)> &registers,
        const std::function<std::optional<std::uint64_t>(std::uint64_t, unsigned)> &memory) {
    std::vector<std::uint64_t> stack;
    auto pop = [&] {
        KT_CHECK(!stack.empty());
        std::uint64_t top = stack.back();
        stack.pop_back();
        return top;
    };
    for (std::size_t at = 0; at < ops.size(); ++at) {
        const Op &op = ops[at];
        std::optional<std::uint64_t> result;
        switch (op.code) {
        case Op::Code::push: result = static_cast<std::uint64_t>(op.operand); break;
        case Op::Code::push_register:
            result = registers(op.reg);
            if (result) *result += static_cast<std::uint64_t>(op.operand);
            break;
        case Op::Code::deref: result = memory(pop(), op.size); break;
        case Op::Code::dup: result = stack.back(); break;
        case Op::Code::over: result = stack.at(stack.size() - 2); break;
        case Op::Code::pick: result = stack.at(stack.size() - 1 - static_cast<std::size_t>(op.operand)); break;
        case Op::Code::drop: pop(); continue;
        case Op::Code::swap: std::swap(stack.at(stack.size() - 1), stack.at(stack.size() - 2)); continue;
        case Op::Code::rot: std::rotate(stack.end() - 3, stack.end() - 1, stack.end()); continue;
        case Op::Code::neg: result = 0 - pop(); break;
        case Op::Code::not_: result = ~pop(); break;
        case Op::Code::abs: result = static_cast<std::uint64_t>(std::abs(static_cast<std::int64_t>(pop()))); break;
        case Op::Code::skip: at += static_cast<std::size_t>(op.operand); continue;
        case Op::Code::bra:
            if (pop() != 0) at += static_cast<std::size_t>(op.operand);
            continue;
        case Op::Code::tls:
        case Op::Code::entry_register: return std::nullopt;
        default: {
            std::uint64_t b = pop(), a = pop();
            result = binary(op.code, a, b);
        }
        }
        if (!result) return std::nullopt;
        stack.push_back(*result);
    }
    KT_CHECK(!stack.empty());
    return stack.back();
}

StoppedProgram::StoppedProgram(const std::string &path) {
    pid_ = ::fork();
    KT_CHECK(pid_ >= 0);
    if (pid_ == 0) {
        ::personality(ADDR_NO_RANDOMIZE);
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        ::execl(path.c_str(), path.c_str(), nullptr);
        ::_exit(127);
    }
    KT_CHECK(wait());
    ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, reinterpret_cast<void *>(PTRACE_O_EXITKILL));
}

StoppedProgram::~StoppedProgram() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

bool StoppedProgram::wait() {
    int status = 0;
    KT_CHECK(::waitpid(pid_, &status, 0) == pid_);
    if (!WIFSTOPPED(status)) {
        pid_ = -1;
        return false;
    }
    signal_ = WSTOPSIG(status);
    KT_CHECK(arch::HostNative::read_registers(Tid{pid_}, registers_));
    KT_CHECK(arch::HostNative::read_floating(Tid{pid_}, floating_));
    return true;
}

bool StoppedProgram::run_to(std::uint64_t address) {
    errno = 0;
    long original = ::ptrace(PTRACE_PEEKTEXT, pid_, address, nullptr);
    KT_CHECK(errno == 0);
    long trapped = original;
    const auto trap = arch::Host::trap_bytes();
    std::memcpy(&trapped, trap.data(), trap.size());
    ::ptrace(PTRACE_POKETEXT, pid_, address, trapped);
    do {
        ::ptrace(PTRACE_CONT, pid_, nullptr, signal_ != SIGTRAP ? signal_ : 0);
        if (!wait()) return false;
    } while (signal_ != SIGTRAP);
    ::ptrace(PTRACE_POKETEXT, pid_, address, original);
    if (arch::Host::trap_address(arch::Host::pc(registers_)).value != address) return false;
    arch::Host::set_pc(registers_, VirtAddr{address});
    KT_CHECK(arch::HostNative::write_registers(Tid{pid_}, registers_));
    return true;
}

bool StoppedProgram::step() {
    ::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr);
    return wait();
}

std::vector<std::uint8_t> StoppedProgram::read(std::uint64_t address, std::size_t size) const {
    std::vector<std::uint8_t> bytes(size);
    iovec here{bytes.data(), size}, there{reinterpret_cast<void *>(address), size};
    ssize_t got = ::process_vm_readv(pid_, &here, 1, &there, 1, 0);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
}

std::uint64_t StoppedProgram::word(std::uint64_t address) const {
    auto bytes = read(address, 8);
    std::uint64_t value = 0;
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
}

const std::byte *StoppedProgram::find_register(unsigned dwarf, arch::RegisterInfo::File file) const {
    const bool is_general = file == arch::RegisterInfo::File::general;
    const void *all = is_general ? static_cast<const void *>(&registers_) : &floating_;
    for (const arch::RegisterInfo &info : arch::Host::registers())
        if (info.dwarf == static_cast<int>(dwarf) && info.file == file)
            return static_cast<const std::byte *>(all) + info.offset;
    return nullptr;
}

std::optional<std::uint64_t> StoppedProgram::register_value(unsigned dwarf) const {
    const std::byte *at = find_register(dwarf, arch::RegisterInfo::File::general);
    std::uint64_t value = 0;
    if (at == nullptr) return std::nullopt;
    std::memcpy(&value, at, sizeof value);
    return value;
}

std::optional<std::uint64_t> StoppedProgram::run(const std::vector<Op> &ops) const {
    return run_ops(
        ops, [this](unsigned reg) { return register_value(reg); },
        [this](std::uint64_t address, unsigned size) -> std::optional<std::uint64_t> {
            auto bytes = read(address, size);
            if (bytes.size() != size) return std::nullopt;
            std::uint64_t value = 0;
            std::memcpy(&value, bytes.data(), size);
            return value;
        });
}

std::optional<std::vector<std::uint8_t>> StoppedProgram::bytes(const Piece &piece, std::size_t size) const {
    std::vector<std::uint8_t> result(size);
    switch (piece.kind) {
    case Piece::Kind::memory: {
        auto address = run(piece.ops);
        if (!address) return std::nullopt;
        result = read(*address, size);
        break;
    }
    case Piece::Kind::register_:
        if (const std::byte *at = find_register(piece.reg, arch::RegisterInfo::File::floating)) {
            std::memcpy(result.data(), at + piece.reg_offset, size);
        } else {
            auto value = register_value(piece.reg);
            if (!value || piece.reg_offset + size > 8) return std::nullopt;
            *value >>= 8 * piece.reg_offset;
            std::memcpy(result.data(), &*value, size);
        }
        break;
    case Piece::Kind::value: {
        auto value = run(piece.ops);
        if (!value) return std::nullopt;
        std::memcpy(result.data(), &*value, std::min<std::size_t>(size, 8));
        break;
    }
    case Piece::Kind::bytes:
        std::copy_n(piece.bytes.begin(), std::min(size, piece.bytes.size()), result.begin());
        break;
    case Piece::Kind::unavailable:
    case Piece::Kind::not_known: return std::nullopt;
    }
    return result.size() == size ? std::optional(result) : std::nullopt;
}

std::optional<std::vector<std::uint8_t>> StoppedProgram::bytes(const Place &place, std::size_t size) const {
    std::vector<std::uint8_t> all;
    for (const Piece &piece : place.pieces) {
        if (all.size() == size) break;
        auto part =
            bytes(piece, piece.size != 0 ? std::min<std::size_t>(piece.size, size - all.size()) : size - all.size());
        if (!part) return std::nullopt;
        all.insert(all.end(), part->begin(), part->end());
    }
    if (all.size() < size) return std::nullopt;
    return all;
}

} // namespace ktrace::symbols::test
