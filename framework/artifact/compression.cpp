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

std::runtime_error too_much(std::uint64_t most) {
  return std::runtime_error(fmt::format("holds more than the {} bytes declared", most));
}

}  // namespace

std::string compress(Compression compression, std::string_view bytes) {
  return compression == Compression::zlib ? compress_zlib(bytes) : compress_brotli(bytes);
}

std::string decompress_brotli_within(std::string_view compressed, std::uint64_t most) {
  const std::unique_ptr<BrotliDecoderState, void (*)(BrotliDecoderState*)> state(
      BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), BrotliDecoderDestroyInstance);
  if (!state) throw std::bad_alloc();
  std::string bytes;
  std::size_t left = compressed.size();
  const std::uint8_t* in = unsigned_bytes(compressed);
  for (auto result = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT; result != BROTLI_DECODER_RESULT_SUCCESS;) {
    std::size_t room = 0, size = 0;  // no room: the decoder keeps the output
    result = BrotliDecoderDecompressStream(state.get(), &left, &in, &room, nullptr, nullptr);
    const std::uint8_t* part = BrotliDecoderTakeOutput(state.get(), &size);
    if (size > most - bytes.size()) throw too_much(most);
    bytes.append(reinterpret_cast<const char*>(part), size);
    if (result == BROTLI_DECODER_RESULT_ERROR) throw std::runtime_error("is corrupt");
    if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) throw std::runtime_error("is truncated");
  }
  if (left > 0) throw std::runtime_error(fmt::format("has {} bytes too many", left));
  return bytes;
}

std::string decompress_zlib(std::string_view compressed, std::uint64_t raw_bytes) {
  std::string bytes(raw_bytes, '\0');
  uLong size = raw_bytes, used = compressed.size();
  const int result = uncompress2(unsigned_bytes(bytes), &size, unsigned_bytes(compressed), &used);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  if (result == Z_BUF_ERROR) throw too_much(raw_bytes);
  if (result != Z_OK) throw std::runtime_error(used == compressed.size() ? "is truncated" : "is corrupt");
  if (used < compressed.size())
    throw std::runtime_error(fmt::format("has {} bytes too many", compressed.size() - used));
  bytes.resize(size);
  return bytes;
}

std::string decompress(Compression compression, std::string_view compressed, std::uint64_t raw_bytes) {
  std::string bytes = compression == Compression::zlib ? decompress_zlib(compressed, raw_bytes)
                                                       : decompress_brotli_within(compressed, raw_bytes);
  if (bytes.size() == raw_bytes) return bytes;
  throw std::runtime_error(fmt::format("holds {} bytes instead of the {} declared", bytes.size(), raw_bytes));
}

}  // namespace mulligan
