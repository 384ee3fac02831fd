#include "framework/artifact/compression.h"

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "framework/core/error.h"

namespace mulligan {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

const std::uint8_t* unsigned_bytes(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
std::uint8_t* unsigned_bytes(std::string& bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}

Error compression_failed(const char* library, std::size_t bytes) {
  return run_error(
      "{} could not compress {} bytes, most likely for lack of memory; free some or choose another "
      "quantize.compression",
      library, bytes);
}

std::string compress_brotli(std::string_view bytes) {
  std::size_t size = BrotliEncoderMaxCompressedSize(bytes.size());
  std::string out(std::max<std::size_t>(size, 16), '\0');
  size = out.size();
  if (!BrotliEncoderCompress(BROTLI_MAX_QUALITY, BROTLI_MAX_WINDOW_BITS, BROTLI_MODE_GENERIC, bytes.size(),
                             unsigned_bytes(bytes), &size, unsigned_bytes(out))) {
    throw compression_failed("Brotli", bytes.size());
  }
  out.resize(size);
  return out;
}

std::string compress_zlib(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  if (compress2(unsigned_bytes(out), &size, unsigned_bytes(bytes), bytes.size(), Z_BEST_COMPRESSION) != Z_OK)
    throw compression_failed("zlib", bytes.size());
  out.resize(size);
  return out;
}

enum class Decoded { on, more_output, end, corrupt };

// Calls step(in, in left, out, room) until the end; it moves all four by what it read and wrote. The output grows chunk
// by chunk and never beyond what was declared.
template <typename Step>
std::string decode(std::string_view compressed, std::uint64_t declared, Step&& step, bool exactly = true) {
  std::string bytes;
  std::size_t used = 0, in_left = compressed.size();
  const std::uint8_t* in = unsigned_bytes(compressed);
  while (true) {
    const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(declared - used, chunk_bytes));
    bytes.resize(used + more);
    std::uint8_t* out = unsigned_bytes(bytes) + used;
    std::size_t room = more;
    const std::size_t in_before = in_left;
    const Decoded result = step(in, in_left, out, room);
    used += more - room;
    if (result == Decoded::end) break;
    if (result == Decoded::corrupt) throw std::runtime_error("is corrupt");
    if (room != more || in_left != in_before) continue;
    if (used == declared && (in_left > 0 || result == Decoded::more_output))
      throw std::runtime_error(fmt::format("holds more than the {} bytes declared", declared));
    throw std::runtime_error("is truncated");
  }
  if (in_left > 0) throw std::runtime_error(fmt::format("has {} bytes too many", in_left));
  if (exactly && used != declared)
    throw std::runtime_error(fmt::format("holds {} bytes instead of the {} declared", used, declared));
  bytes.resize(used);
  return bytes;
}

std::string decompress_brotli(std::string_view compressed, std::uint64_t raw_bytes, bool exactly) {
  const std::unique_ptr<BrotliDecoderState, void (*)(BrotliDecoderState*)> state(
      BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), BrotliDecoderDestroyInstance);
  if (!state) throw std::bad_alloc();
  const auto step = [&](const std::uint8_t*& in, std::size_t& in_left, std::uint8_t*& out,
                        std::size_t& room) {
    switch (BrotliDecoderDecompressStream(state.get(), &in_left, &in, &room, &out, nullptr)) {
      case BROTLI_DECODER_RESULT_SUCCESS:
        return Decoded::end;
      case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT:
        return Decoded::more_output;
      case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT:
        return Decoded::on;
      default:
        return Decoded::corrupt;
    }
  };
  return decode(compressed, raw_bytes, step, exactly);
}

std::string decompress_zlib(std::string_view compressed, std::uint64_t raw_bytes) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  return decode(compressed, raw_bytes, [&](auto& in, std::size_t& in_left, auto& out, std::size_t& room) {
    const auto count = static_cast<uInt>(std::min(in_left, chunk_bytes));
    stream.next_in = const_cast<Bytef*>(in);
    stream.avail_in = count;
    stream.next_out = out;
    stream.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream, Z_NO_FLUSH);
    in = stream.next_in;
    in_left -= count - stream.avail_in;
    room = stream.avail_out;
    if (result == Z_STREAM_END) return Decoded::end;
    return result == Z_OK || result == Z_BUF_ERROR ? Decoded::on : Decoded::corrupt;
  });
}

}  // namespace

std::string brotli_version() {
  const std::uint32_t version = BrotliEncoderVersion();
  return fmt::format("brotli {}.{}.{} quality {} window {}", version >> 24, version >> 12 & 0xFFF,
                     version & 0xFFF, BROTLI_MAX_QUALITY, BROTLI_MAX_WINDOW_BITS);
}

std::string compress(Compression compression, std::string_view bytes) {
  return compression == Compression::zlib ? compress_zlib(bytes) : compress_brotli(bytes);
}

std::string decompress(Compression compression, std::string_view compressed, std::uint64_t raw_bytes) {
  return compression == Compression::zlib ? decompress_zlib(compressed, raw_bytes)
                                          : decompress_brotli(compressed, raw_bytes, /*exactly=*/true);
}

std::string decompress_brotli_within(std::string_view compressed, std::uint64_t most) {
  return decompress_brotli(compressed, most, /*exactly=*/false);
}

}  // namespace mulligan
