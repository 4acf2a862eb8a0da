// Corpus: the four sources of instructions, each with a fixed seed or a fixed order, so that every run has the same.
#include "tests/isa/x86_64/corpus.h"

#if defined(__x86_64__)

#include <Zydis/Zydis.h>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <link.h>
#include <map>

namespace ktrace::test {

namespace {

ZydisDecoder make_decoder() {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return decoder;
}

Case make_case(std::span<const std::byte> bytes, ZydisMnemonic mnemonic) {
    Case made;
    made.bytes.assign(bytes.begin(), bytes.end());
    made.text = ZydisMnemonicGetString(mnemonic);
    for (std::byte byte : bytes) {
        constexpr char digits[] = "0123456789abcdef";
        const auto value = std::to_integer<unsigned>(byte);
        made.text += {' ', digits[value >> 4], digits[value & 15]};
    }
    return made;
}

// --- the encoder ---

ZydisRegister any_register(ZydisRegister first, unsigned count, Random &random) {
    return static_cast<ZydisRegister>(first + static_cast<int>(random.below(count)));
}

ZydisRegister random_register(unsigned file, Random &random) {
    switch (file) {
    case 0: return any_register(ZYDIS_REGISTER_AL, 20, random);
    case 1: return any_register(ZYDIS_REGISTER_AX, 16, random);
    case 2: return any_register(ZYDIS_REGISTER_EAX, 16, random);
    case 3: return any_register(ZYDIS_REGISTER_RAX, 16, random);
    case 4: return any_register(ZYDIS_REGISTER_XMM0, 32, random);
    case 5: return any_register(ZYDIS_REGISTER_YMM0, 32, random);
    case 6: return any_register(ZYDIS_REGISTER_ZMM0, 32, random);
    case 7: return any_register(ZYDIS_REGISTER_K0, 8, random);
    case 8: return any_register(ZYDIS_REGISTER_MM0, 8, random);
    case 9: return any_register(ZYDIS_REGISTER_ST0, 8, random);
    case 10: return any_register(ZYDIS_REGISTER_ES, 6, random);
    default: return any_register(ZYDIS_REGISTER_BND0, 4, random);
    }
}

ZydisEncoderOperand memory_operand(unsigned file, Random &random) {
    static constexpr ZyanU16 sizes[] = {1, 2, 4, 8, 16, 32, 64, 10, 6, 28, 108, 512, 0};
    ZydisEncoderOperand operand{};
    operand.type = ZYDIS_OPERAND_TYPE_MEMORY;
    // Mostly as wide as the registers beside it.
    static constexpr ZyanU16 natural[] = {1, 2, 4, 8, 16, 32, 64, 8, 8, 10, 2, 16};
    operand.mem.size = random.one_in(2) ? natural[file] : sizes[random.below(std::size(sizes))];
    operand.mem.displacement = static_cast<std::int32_t>(random.below(256)) - 128;
    switch (random.below(4)) {
    case 0: operand.mem.base = ZYDIS_REGISTER_RIP; break;
    case 1: operand.mem.base = any_register(ZYDIS_REGISTER_RAX, 16, random); break;
    case 2: operand.mem.base = any_register(ZYDIS_REGISTER_EAX, 16, random); break;
    default:
        operand.mem.base = any_register(ZYDIS_REGISTER_RAX, 16, random);
        operand.mem.index = random.one_in(4) ? random_register(4 + static_cast<unsigned>(random.below(3)), random)
                                             : any_register(ZYDIS_REGISTER_RAX, 16, random);
        operand.mem.scale = static_cast<ZyanU8>(1u << random.below(4));
    }
    return operand;
}

ZydisEncoderOperand random_operand(unsigned file, Random &random) {
    ZydisEncoderOperand operand{};
    const std::uint64_t kind = random.below(8);
    if (kind < 2) return memory_operand(file, random);
    if (kind == 2) {
        operand.type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
        operand.imm.u = random.below(random.one_in(3) ? 1u << 30 : 100);
        return operand;
    }
    operand.type = ZYDIS_OPERAND_TYPE_REGISTER;
    operand.reg.value = random_register(kind == 3 ? static_cast<unsigned>(random.below(12)) : file, random);
    return operand;
}

/// One attempt at an instruction with this mnemonic: most do not exist.
std::size_t try_encode(ZydisMnemonic mnemonic, Random &random, std::byte *into) {
    ZydisEncoderRequest request{};
    request.machine_mode = ZYDIS_MACHINE_MODE_LONG_64;
    request.mnemonic = mnemonic;
    request.operand_count = static_cast<ZyanU8>(random.below(5));
    const auto file = static_cast<unsigned>(random.below(12));
    for (unsigned i = 0; i < request.operand_count; ++i) request.operands[i] = random_operand(file, random);
    const bool is_vector = file >= 4 && file <= 6;
    if (is_vector && request.operand_count >= 2 && random.one_in(2)) { // a mask behind the destination
        request.operands[1].type = ZYDIS_OPERAND_TYPE_REGISTER;
        request.operands[1].reg.value = random_register(7, random);
        request.evex.zeroing_mask = random.one_in(3);
    }
    if (random.one_in(12)) request.prefixes = ZYDIS_ATTRIB_HAS_REP;
    if (random.one_in(12)) request.prefixes = ZYDIS_ATTRIB_HAS_LOCK;
    if (random.one_in(12)) request.prefixes = ZYDIS_ATTRIB_HAS_SEGMENT_FS;
    ZyanUSize size = ZYDIS_MAX_INSTRUCTION_LENGTH;
    return ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&request, into, &size)) ? size : 0;
}

// --- by hand ---

using Bytes = std::vector<std::uint8_t>;

std::uint8_t one_of(std::initializer_list<std::uint8_t> choices, Random &random) {
    return choices.begin()[random.below(choices.size())];
}

void append_random(Bytes &bytes, std::size_t count, Random &random) {
    while (count-- > 0) bytes.push_back(static_cast<std::uint8_t>(random.next()));
}

void append_prefixes(Bytes &bytes, Random &random) {
    while (random.one_in(3)) bytes.push_back(one_of({0x2e, 0x3e, 0xf2, 0x64, 0x65, 0x67, 0x36}, random));
    if (random.one_in(8))
        bytes.insert(bytes.end(), {0x66, 0x48});
    else if (random.one_in(3))
        bytes.push_back(static_cast<std::uint8_t>(0x40 + random.below(16)));
}

Bytes random_transfer(Random &random) {
    Bytes bytes;
    append_prefixes(bytes, random);
    switch (random.below(5)) {
    case 0: bytes.push_back(static_cast<std::uint8_t>(0x70 + random.below(16))); break;
    case 1: bytes.insert(bytes.end(), {0x0f, static_cast<std::uint8_t>(0x80 + random.below(16))}); break;
    case 2: bytes.push_back(static_cast<std::uint8_t>(0xe0 + random.below(4))); break;
    case 3: bytes.push_back(one_of({0xe8, 0xe9, 0xeb}, random)); break;
    default:
        bytes.insert(bytes.end(),
                     {0xff, static_cast<std::uint8_t>((random.next() & 0xc7) | one_of({0x10, 0x20}, random))});
    }
    append_random(bytes, 6, random);
    return bytes;
}

Bytes random_instruction(Random &random) {
    Bytes bytes;
    while (random.one_in(3))
        bytes.push_back(one_of({0x2e, 0x3e, 0x64, 0x65, 0x66, 0x66, 0x67, 0xf0, 0xf2, 0xf3}, random));
    if (random.one_in(3)) bytes.push_back(static_cast<std::uint8_t>(0x40 + random.below(16)));
    switch (random.below(8)) {
    case 0:
    case 1: bytes.push_back(0x0f); break;
    case 2: bytes.insert(bytes.end(), {0x0f, one_of({0x38, 0x3a, 0xae, 0xc7, 0x01}, random)}); break;
    case 3: bytes.push_back(one_of({0xc4, 0xc5, 0x62}, random)); break;
    default: break;
    }
    append_random(bytes, 12, random);
    bytes.resize(ZYDIS_MAX_INSTRUCTION_LENGTH);
    return bytes;
}

/// `count` of what `make` makes and the decoder takes for an instruction.
std::vector<Case> decodable(std::uint64_t seed, std::size_t count, Bytes (*make)(Random &)) {
    const ZydisDecoder decoder = make_decoder();
    Random random(seed);
    std::vector<Case> cases;
    while (cases.size() < count) {
        const Bytes bytes = make(random);
        ZydisDecodedInstruction instruction;
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), bytes.size(), &instruction)))
            continue;
        cases.push_back(make_case(std::as_bytes(std::span(bytes)).first(instruction.length), instruction.mnemonic));
    }
    return cases;
}

// --- real code ---

struct Mapped {
    std::vector<char> bytes;
    std::span<const std::byte> text() const;
};

std::span<const std::byte> Mapped::text() const {
    Elf64_Ehdr header;
    if (bytes.size() < sizeof header) return {};
    std::memcpy(&header, bytes.data(), sizeof header);
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    std::memcpy(sections.data(), bytes.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
    const Elf64_Shdr &names = sections[header.e_shstrndx];
    for (const Elf64_Shdr &section : sections) {
        if (std::strcmp(bytes.data() + names.sh_offset + section.sh_name, ".text") == 0)
            return std::as_bytes(std::span(bytes)).subspan(section.sh_offset, section.sh_size);
    }
    return {};
}

/// The key by which instructions count as the same in the corpus.
std::string shape(const ZydisDecodedInstruction &instruction, std::span<const ZydisDecodedOperand> operands) {
    std::string key = std::to_string(instruction.mnemonic) + "/" + std::to_string(instruction.encoding);
    key += "/" + std::to_string(instruction.attributes & ~std::uint64_t{ZYDIS_ATTRIB_HAS_REX});
    for (const ZydisDecodedOperand &operand : operands) {
        key += "," + std::to_string(operand.type) + ":" + std::to_string(operand.size);
        if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
        key += operand.mem.base == ZYDIS_REGISTER_RIP ? "r" : operand.mem.base == ZYDIS_REGISTER_NONE ? "n" : "b";
        key += operand.mem.index == ZYDIS_REGISTER_NONE ? "" : "i";
    }
    return key;
}

} // namespace

std::vector<Case> encoded_cases(std::uint64_t seed, std::size_t each) {
    constexpr int most_attempts = 6000;
    Random random(seed);
    std::vector<Case> cases;
    for (int mnemonic = 1; mnemonic <= ZYDIS_MNEMONIC_MAX_VALUE; ++mnemonic) {
        std::size_t made = 0;
        for (int attempt = 0; attempt < most_attempts && made < each; ++attempt) {
            std::byte bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
            const std::size_t size = try_encode(static_cast<ZydisMnemonic>(mnemonic), random, bytes);
            if (size == 0) continue;
            cases.push_back(make_case({bytes, size}, static_cast<ZydisMnemonic>(mnemonic)));
            ++made;
        }
    }
    return cases;
}

std::vector<Case> transfer_cases(std::uint64_t seed, std::size_t count) {
    return decodable(seed, count, random_transfer);
}

std::vector<Case> random_cases(std::uint64_t seed, std::size_t count) {
    return decodable(seed, count, random_instruction);
}

std::vector<Case> harvested_cases(const std::string &path, std::size_t each, std::size_t stride) {
    std::ifstream file(path, std::ios::binary);
    Mapped mapped{{std::istreambuf_iterator<char>(file), {}}};
    std::span<const std::byte> text = mapped.text();
    const ZydisDecoder decoder = make_decoder();
    std::map<std::string, std::size_t> seen;
    std::vector<Case> cases;
    for (std::size_t count = 0; !text.empty(); ++count) {
        ZydisDecodedInstruction instruction;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, text.data(), text.size(), &instruction, operands))) {
            text = text.subspan(1);
            continue;
        }
        const bool is_new = ++seen[shape(instruction, {operands, instruction.operand_count})] <= each;
        if (is_new || count % stride == 0)
            cases.push_back(make_case(text.first(instruction.length), instruction.mnemonic));
        text = text.subspan(instruction.length);
    }
    return cases;
}

std::string library_path(const std::string &name) {
    void *library = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return {};
    std::string path;
    link_map *map = nullptr;
    if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) path = map->l_name;
    ::dlclose(library);
    return path;
}

} // namespace ktrace::test

#endif
