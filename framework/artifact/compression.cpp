#include "framework/artifact/compression.h"

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <fmt/format.h>
#include <lzma.h>
#include <zstd.h>

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

std::string compress_xz(std::string_view bytes) {
  std::string out(lzma_stream_buffer_bound(bytes.size()), '\0');
  std::size_t size = 0;
  if (lzma_easy_buffer_encode(9 | LZMA_PRESET_EXTREME, LZMA_CHECK_NONE, nullptr, unsigned_bytes(bytes),
                              bytes.size(), unsigned_bytes(out), &size, out.size()) != LZMA_OK) {
    throw compression_failed("xz", bytes.size());
  }
  out.resize(size);
  return out;
}

std::string compress_zstd(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size =
      ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), ZSTD_maxCLevel());
  if (ZSTD_isError(size)) throw compression_failed("zstd", bytes.size());
  out.resize(size);
  return out;
}

// Output of a decoder that grows chunk by chunk and never beyond what was declared.
class BoundedOutput {
 public:
  explicit BoundedOutput(std::uint64_t limit) : limit_(limit) {}
  // Room for the next output; empty when the limit is reached.
  std::pair<std::uint8_t*, std::size_t> room() {
    const std::size_t more = static_cast<std::size_t>(std::min<std::uint64_t>(limit_ - used_, chunk_bytes));
    bytes_.resize(used_ + more);
    return {unsigned_bytes(bytes_) + used_, more};
  }
  void take(std::size_t count) { used_ += count; }
  bool full() const { return used_ == limit_; }
  [[noreturn]] void overflow() const {
    throw std::runtime_error(fmt::format("holds more than the {} bytes declared", limit_));
  }
  std::string finish(bool exactly = true) {
    if (exactly && !full())
      throw std::runtime_error(fmt::format("holds {} bytes instead of the {} declared", used_, limit_));
    bytes_.resize(used_);
    return std::move(bytes_);
  }

 private:
  std::uint64_t limit_;
  std::size_t used_ = 0;
  std::string bytes_;
};

std::string decompress_brotli(std::string_view compressed, std::uint64_t raw_bytes, bool exactly = true) {
  const std::unique_ptr<BrotliDecoderState, void (*)(BrotliDecoderState*)> state(
      BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), BrotliDecoderDestroyInstance);
  if (!state) throw std::bad_alloc();
  BoundedOutput output(raw_bytes);
  const std::uint8_t* in = unsigned_bytes(compressed);
  std::size_t in_left = compressed.size();
  while (true) {
    auto [out, room] = output.room();
    const std::size_t before = room;
    const BrotliDecoderResult result =
        BrotliDecoderDecompressStream(state.get(), &in_left, &in, &room, &out, nullptr);
    output.take(before - room);
    if (result == BROTLI_DECODER_RESULT_SUCCESS) break;
    if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) {
      if (output.full()) output.overflow();
      continue;
    }
    throw std::runtime_error(result == BROTLI_DECODER_RESULT_ERROR ? "is corrupt" : "is truncated");
  }
  if (in_left > 0) throw std::runtime_error(fmt::format("has {} bytes too many", in_left));
  return output.finish(exactly);
}

std::string decompress_xz(std::string_view compressed, std::uint64_t raw_bytes) {
  constexpr std::uint64_t memory_limit = std::uint64_t{1} << 28;  // preset 9 needs 65 MiB
  lzma_stream stream = LZMA_STREAM_INIT;
  const std::unique_ptr<lzma_stream, void (*)(lzma_stream*)> guard(&stream, lzma_end);
  if (lzma_stream_decoder(&stream, memory_limit, 0) != LZMA_OK) throw std::bad_alloc();
  BoundedOutput output(raw_bytes);
  stream.next_in = unsigned_bytes(compressed);
  stream.avail_in = compressed.size();
  while (true) {
    const auto [out, room] = output.room();
    stream.next_out = out;
    stream.avail_out = room;
    const lzma_ret result = lzma_code(&stream, LZMA_FINISH);
    output.take(room - stream.avail_out);
    if (result == LZMA_STREAM_END) break;
    if (result == LZMA_OK && stream.avail_out == 0 && !output.full()) continue;
    if ((result == LZMA_OK || result == LZMA_BUF_ERROR) && output.full() && stream.avail_in > 0)
      output.overflow();
    throw std::runtime_error(result == LZMA_OK || result == LZMA_BUF_ERROR ? "is truncated" : "is corrupt");
  }
  if (stream.avail_in > 0) throw std::runtime_error(fmt::format("has {} bytes too many", stream.avail_in));
  return output.finish();
}

std::string decompress_zstd(std::string_view compressed, std::uint64_t raw_bytes) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  BoundedOutput output(raw_bytes);
  ZSTD_inBuffer in{compressed.data(), compressed.size(), 0};
  while (true) {
    const auto [bytes, room] = output.room();
    ZSTD_outBuffer out{bytes, room, 0};
    const std::size_t position = in.pos;
    const std::size_t result = ZSTD_decompressStream(context.get(), &out, &in);
    output.take(out.pos);
    if (ZSTD_isError(result)) throw std::runtime_error("is corrupt");
    if (result == 0) break;
    if (out.pos == 0 && in.pos == position) {
      if (output.full() && in.pos < in.size) output.overflow();
      throw std::runtime_error(output.full() ? "holds more than declared or is truncated" : "is truncated");
    }
  }
  if (in.pos < in.size) throw std::runtime_error(fmt::format("has {} bytes too many", in.size - in.pos));
  return output.finish();
}

}  // namespace

std::string_view compression_word(Compression compression) {
  switch (compression) {
    case Compression::brotli:
      return "brotli";
    case Compression::xz:
      return "xz";
    case Compression::zstd:
      return "zstd";
    case Compression::adaptive:
      return "adaptive";
  }
  return "";
}

std::string compressor_version(Compression compression) {
  switch (compression) {
    case Compression::brotli: {
      const std::uint32_t version = BrotliEncoderVersion();
      return fmt::format("brotli {}.{}.{} quality {} window {}", version >> 24, version >> 12 & 0xFFF,
                         version & 0xFFF, BROTLI_MAX_QUALITY, BROTLI_MAX_WINDOW_BITS);
    }
    case Compression::adaptive:
      return "adaptive, " + compressor_version(Compression::brotli);
    case Compression::xz:
      return fmt::format("xz {} preset 9 extreme", lzma_version_string());
    case Compression::zstd:
      return fmt::format("zstd {} level {}", ZSTD_versionString(), ZSTD_maxCLevel());
  }
  throw std::logic_error("an unknown compression");
}

std::string compress(Compression compression, std::string_view bytes) {
  switch (compression) {
    case Compression::brotli:
    case Compression::adaptive:
      return compress_brotli(bytes);
    case Compression::xz:
      return compress_xz(bytes);
    case Compression::zstd:
      return compress_zstd(bytes);
  }
  return {};
}

std::string decompress_brotli_within(std::string_view compressed, std::uint64_t most) {
  return decompress_brotli(compressed, most, /*exactly=*/false);
}

std::string decompress(Compression compression, std::string_view compressed, std::uint64_t raw_bytes) {
  switch (compression) {
    case Compression::brotli:
    case Compression::adaptive:
      return decompress_brotli(compressed, raw_bytes);
    case Compression::xz:
      return decompress_xz(compressed, raw_bytes);
    case Compression::zstd:
      return decompress_zstd(compressed, raw_bytes);
  }
  return {};
}

}  // namespace mulligan
