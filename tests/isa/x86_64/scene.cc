// Scenes: registers and memory with which an instruction most probably does something instead of faulting. Its memory
// operands are moved into the data region (by the registers that they use, or by their displacement), its jumps into
// the code region; one scene in ten is left at random, so that faults are compared too.
#if defined(__x86_64__)

#include <Zydis/Zydis.h>
#include <cpuid.h>
#include <cstring>

#include "tests/isa/x86_64/corpus.h"
#include "x86_64/general.h"

namespace ktrace::test {

namespace {

using arch::X86_64Registers;

constexpr std::uint64_t lowest_refused = 1ull << 47; // by the kernel, as a segment's base
constexpr int number_cx = 1, number_dx = 2, number_sp = 4, number_bp = 5;

struct Decoded {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    std::span<const ZydisDecodedOperand> all() const { return {operands, instruction.operand_count}; }
};

bool decode(std::span<const std::byte> code, Decoded &decoded) {
    static const ZydisDecoder decoder = [] {
        ZydisDecoder made;
        ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        return made;
    }();
    return ZYAN_SUCCESS(
        ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &decoded.instruction, decoded.operands));
}

/// Two runs of these differ by nature, or they reach beyond the process (hypercalls).
bool is_deterministic(ZydisMnemonic mnemonic) {
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64:
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_UMWAIT:
    case ZYDIS_MNEMONIC_TPAUSE:
    case ZYDIS_MNEMONIC_UMONITOR:
    case ZYDIS_MNEMONIC_VMCALL:
    case ZYDIS_MNEMONIC_VMMCALL:
    case ZYDIS_MNEMONIC_VMFUNC:
    case ZYDIS_MNEMONIC_TDCALL:
    case ZYDIS_MNEMONIC_SEAMCALL:
    case ZYDIS_MNEMONIC_GETSEC: return false;
    default: return true;
    }
}

std::uint64_t place_in_data(Random &random) {
    const std::uint64_t line = Stage::data_at + 0x1000 + 64 * random.below(32);
    return random.one_in(4) ? line + random.below(64) : line;
}

std::uint64_t place_in_code(Random &random) { return Stage::site + 0x100 + random.below(0x1000); }

int number_of(ZydisRegister reg) {
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15 ? whole - ZYDIS_REGISTER_RAX : -1;
}

class SceneMaker {
  public:
    SceneMaker(Scene &scene, const Decoded &decoded, Random &random)
        : scene_(scene), decoded_(decoded), instruction_(decoded.instruction), random_(random) {}

    void make(const Stage &stage) {
        fill_memory();
        fill_registers(stage.initial_registers());
        fill_extended(stage.initial_extended());
        if (random_.one_in(10)) return aim_relative_operand();
        calm_registers();
        for (const ZydisDecodedOperand &operand : decoded_.all())
            if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) aim_memory(operand.mem);
        aim_relative_operand();
        aim_transfer();
    }

  private:
    std::uint64_t &general(int number) { return arch::x86::general(scene_.regs, number); }

    void fill_memory() {
        scene_.memory.resize(Stage::data_size + Stage::stack_size);
        for (std::size_t i = 0; i < scene_.memory.size(); i += 8) {
            const std::uint64_t value = random_.one_in(3) ? random_.below(256) : random_.next();
            std::memcpy(scene_.memory.data() + i, &value, sizeof value);
        }
    }

    void fill_registers(const X86_64Registers &initial) {
        constexpr std::uint64_t arithmetic = 0x8d5, direction = 0x400;
        scene_.regs = initial;
        for (int i = 0; i < 16; ++i) {
            const std::uint64_t kind = random_.below(4);
            general(i) = kind < 2 ? place_in_data(random_) : kind == 2 ? random_.below(256) : random_.next();
        }
        scene_.regs.sp = Stage::stack_at + Stage::stack_size / 2 + 8 * random_.below(4);
        scene_.regs.flags = (initial.flags & ~(arithmetic | direction)) | (random_.next() & arithmetic);
        if (random_.one_in(5)) scene_.regs.flags |= direction;
        scene_.regs.fs_base = place_in_data(random_);
        scene_.regs.gs_base = place_in_data(random_);
        scene_.regs.ip = Stage::site;
    }

    /// Vector registers of bytes, of doubles, or of small numbers (which do as indexes of a gather), and a full x87
    /// stack.
    void fill_extended(const std::vector<std::byte> &initial) {
        scene_.extended = initial;
        std::byte *image = scene_.extended.data();
        constexpr std::size_t status = 2, tags = 4, x87 = 32, legacy_vectors = 160, header = 512;
        std::memset(image + status, 0, 2);
        image[tags] = std::byte{0xff};
        for (std::size_t i = 0; i < 8; ++i) {
            const long double value = static_cast<long double>(static_cast<std::int64_t>(random_.next() >> 40)) / 1024;
            std::memcpy(image + x87 + 16 * i, &value, 10);
        }
        vectors_ = random_.below(3);
        fill_vectors(image + legacy_vectors, 16 * 16);
        std::uint64_t features = 3;
        for (unsigned component : {2u, 5u, 6u, 7u}) { // the rest of ymm, k0-7, the rest of zmm, zmm16-31
            unsigned size = 0, offset = 0, c = 0, d = 0;
            __cpuid_count(0xd, component, size, offset, c, d);
            if (size == 0 || offset + size > scene_.extended.size()) continue;
            features |= 1u << component;
            fill_vectors(image + offset, size);
        }
        std::memcpy(image + header, &features, sizeof features);
    }

    void fill_vectors(std::byte *at, std::size_t size) {
        for (std::size_t i = 0; i < size; i += 8) {
            const double number = static_cast<double>(static_cast<std::int32_t>(random_.next())) / 64;
            std::uint64_t value = vectors_ == 0 ? random_.next() : random_.below(64);
            if (vectors_ == 1) std::memcpy(&value, &number, sizeof value);
            std::memcpy(at + i, &value, sizeof value);
        }
    }

    /// Values with which an instruction of its kind gets somewhere.
    void calm_registers() {
        constexpr std::uint64_t repetitions = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
        if ((instruction_.attributes & repetitions) != 0) general(number_cx) = random_.below(20);
        switch (instruction_.mnemonic) {
        case ZYDIS_MNEMONIC_DIV:
        case ZYDIS_MNEMONIC_IDIV: general(number_dx) = 0; break;
        case ZYDIS_MNEMONIC_LEAVE:
        case ZYDIS_MNEMONIC_ENTER: general(number_bp) = scene_.regs.sp + 0x40; break;
        case ZYDIS_MNEMONIC_XGETBV: general(number_cx) = 0; break;
        case ZYDIS_MNEMONIC_LOOP:
        case ZYDIS_MNEMONIC_LOOPE:
        case ZYDIS_MNEMONIC_LOOPNE:
        case ZYDIS_MNEMONIC_JECXZ:
        case ZYDIS_MNEMONIC_JRCXZ: general(number_cx) = random_.below(3); break;
        case ZYDIS_MNEMONIC_BT:
        case ZYDIS_MNEMONIC_BTC:
        case ZYDIS_MNEMONIC_BTR:
        case ZYDIS_MNEMONIC_BTS:
            for (const ZydisDecodedOperand &operand : decoded_.all())
                if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && number_of(operand.reg.value) >= 0)
                    general(number_of(operand.reg.value)) = random_.below(500);
            break;
        default: break;
        }
    }

    /// Sets the operand's registers so that it lies in the data region.
    void aim_memory(const ZydisDecodedOperandMem &operand) {
        const int base = number_of(operand.base), index = number_of(operand.index);
        if (base == number_sp && index < 0) return;
        if (operand.base == ZYDIS_REGISTER_RIP || operand.base == ZYDIS_REGISTER_EIP) return;
        const std::uint64_t wanted = place_in_data(random_) - static_cast<std::uint64_t>(operand.disp.value);
        if (index >= 0 && index != number_sp) general(index) = random_.below(16);
        const std::uint64_t indexed = index >= 0 ? general(index) * operand.scale : 0;
        if (operand.segment == ZYDIS_REGISTER_FS || operand.segment == ZYDIS_REGISTER_GS) {
            std::uint64_t &holder = operand.segment == ZYDIS_REGISTER_FS ? scene_.regs.fs_base : scene_.regs.gs_base;
            if (base >= 0) general(base) = random_.below(1024) + 1024;
            const std::uint64_t segment_base = wanted - indexed - (base >= 0 ? general(base) : 0);
            if (segment_base < lowest_refused) holder = segment_base;
        } else if (base >= 0 && base == index) {
            general(base) = wanted / (operand.scale + 1u);
        } else if (base >= 0) {
            general(base) = wanted - indexed;
        } else if (index >= 0) {
            general(index) = wanted / operand.scale;
        }
    }

    /// A pc-relative operand is turned to the data region by its displacement.
    void aim_relative_operand() {
        for (const ZydisDecodedOperand &operand : decoded_.all()) {
            if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
            if (operand.mem.base != ZYDIS_REGISTER_RIP && operand.mem.base != ZYDIS_REGISTER_EIP) continue;
            write_relative(instruction_.raw.disp.offset, place_in_data(random_));
        }
    }

    /// Jumps go to the code region, wherever their target comes from.
    void aim_transfer() {
        const ZydisDecodedOperand &target = decoded_.operands[0];
        if (instruction_.mnemonic == ZYDIS_MNEMONIC_RET) {
            put(scene_.regs.sp, place_in_code(random_));
        } else if (instruction_.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE) {
            return;
        } else if (target.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
            if (instruction_.raw.imm[0].size == 32)
                write_relative(instruction_.raw.imm[0].offset, place_in_code(random_));
        } else if (target.type == ZYDIS_OPERAND_TYPE_REGISTER) {
            const int number = number_of(target.reg.value);
            if (number >= 0 && number != number_sp) general(number) = place_in_code(random_);
        } else {
            // The whole data region reads as addresses in the code region.
            for (std::size_t i = 0; i < Stage::data_size; i += 8) put(Stage::data_at + i, place_in_code(random_) & ~7u);
        }
    }

    void write_relative(std::size_t offset, std::uint64_t target) {
        const std::uint64_t distance = target - (Stage::site + scene_.code.size());
        const auto low = static_cast<std::uint32_t>(distance);
        std::memcpy(scene_.code.data() + offset, &low, sizeof low);
    }

    void put(std::uint64_t address, std::uint64_t value) {
        const std::size_t offset =
            address >= Stage::stack_at ? address - Stage::stack_at + Stage::data_size : address - Stage::data_at;
        std::memcpy(scene_.memory.data() + offset, &value, sizeof value);
    }

    Scene &scene_;
    const Decoded &decoded_;
    const ZydisDecodedInstruction &instruction_;
    Random &random_;
    std::uint64_t vectors_ = 0;
};

/// A branch into its own bytes may never end, or run what is no instruction of the case.
bool branches_into_itself(std::span<const std::byte> code) {
    Decoded decoded;
    if (!decode(code, decoded) || decoded.operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return false;
    if (!decoded.operands[0].imm.is_relative) return false;
    const std::int64_t target = decoded.instruction.length + decoded.operands[0].imm.value.s;
    return target >= 0 && target < decoded.instruction.length;
}

} // namespace

Scene make_scene(const Case &instruction, const Stage &stage, Random &random) {
    Scene scene;
    scene.code = instruction.bytes;
    Decoded decoded;
    if (!decode(scene.code, decoded)) return scene;
    SceneMaker(scene, decoded, random).make(stage);
    scene.runnable = is_deterministic(decoded.instruction.mnemonic) && !branches_into_itself(scene.code);
    return scene;
}

} // namespace ktrace::test

#endif
