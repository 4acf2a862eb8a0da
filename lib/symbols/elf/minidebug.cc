#include "symbols/elf/minidebug.h"

#include <algorithm>
#include <string>

#include <lzma.h>

namespace ktrace::symbols {

namespace {

constexpr std::uint64_t decoder_memory = 128U << 20U; // xz -9 takes 65 MB
constexpr std::size_t most_output = 256U << 20U;

/// Owns liblzma's decoder.
class Decoder {
  public:
    Decoder() { ok_ = ::lzma_stream_decoder(&stream_, decoder_memory, LZMA_TELL_UNSUPPORTED_CHECK) == LZMA_OK; }
    ~Decoder() { ::lzma_end(&stream_); }
    Decoder(const Decoder &) = delete;

    bool ok() const { return ok_; }
    lzma_stream &stream() { return stream_; }

  private:
    lzma_stream stream_ = LZMA_STREAM_INIT;
    bool ok_ = false;
};

const char *why(lzma_ret result) {
    switch (result) {
    case LZMA_MEMLIMIT_ERROR: return "it needs too much memory";
    case LZMA_MEM_ERROR: return "there is not enough memory";
    case LZMA_FORMAT_ERROR: return "it is not in xz format";
    case LZMA_OPTIONS_ERROR:
    case LZMA_UNSUPPORTED_CHECK: return "it uses an option that liblzma does not know";
    case LZMA_BUF_ERROR: return "it is truncated";
    default: return "it is corrupt";
    }
}

} // namespace

Result<std::vector<std::byte>> decompress_xz(std::span<const std::byte> compressed) {
    auto refuse = [](const char *reason) {
        return fail(Error::Kind::refused, std::string("cannot decompress .gnu_debugdata: ") + reason);
    };
    Decoder decoder;
    if (!decoder.ok()) return refuse("there is not enough memory");
    lzma_stream &stream = decoder.stream();
    stream.next_in = reinterpret_cast<const std::uint8_t *>(compressed.data());
    stream.avail_in = compressed.size();
    std::vector<std::byte> output(std::clamp<std::size_t>(compressed.size() * 6, 4096, most_output));
    std::size_t used = 0;
    while (true) {
        stream.next_out = reinterpret_cast<std::uint8_t *>(output.data()) + used;
        stream.avail_out = output.size() - used;
        lzma_ret result = ::lzma_code(&stream, LZMA_FINISH);
        used = output.size() - stream.avail_out;
        if (result == LZMA_STREAM_END) break;
        if (result != LZMA_OK) return refuse(why(result));
        if (stream.avail_out != 0) continue;
        if (output.size() == most_output) return refuse("it is too large");
        output.resize(std::min(output.size() * 2, most_output));
    }
    output.resize(used);
    output.shrink_to_fit();
    return output;
}

std::uint32_t crc32(std::span<const std::byte> bytes) {
    return ::lzma_crc32(reinterpret_cast<const std::uint8_t *>(bytes.data()), bytes.size(), 0);
}

} // namespace ktrace::symbols
