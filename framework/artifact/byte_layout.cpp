#include "framework/artifact/artifact_layout.h"

#include <fmt/format.h>

#include <stdexcept>

namespace mulligan {
namespace {

constexpr std::string_view mark = "BSHF";

}  // namespace

std::string shuffle_bytes(std::string_view bytes, int stride) {
  const auto step = static_cast<std::size_t>(stride);
  if (bytes.size() < step) return std::string(bytes);
  std::string out(mark);
  out.reserve(bytes.size() + mark.size() + 1);
  out += static_cast<char>(stride);
  for (std::size_t phase = 0; phase < step; ++phase) {
    for (std::size_t i = phase; i < bytes.size(); i += step) out += bytes[i];
  }
  return out;
}

std::string unshuffle_bytes(std::string_view shuffled, int stride) {
  const auto step = static_cast<std::size_t>(stride);
  if (shuffled.size() < step) return std::string(shuffled);
  if (!shuffled.starts_with(mark) || shuffled.size() < mark.size() + 1 + step ||
      static_cast<unsigned char>(shuffled[mark.size()]) != step) {
    throw std::runtime_error(fmt::format("has no byte-shuffle mark of stride {}", stride));
  }
  shuffled.remove_prefix(mark.size() + 1);
  std::string out(shuffled.size(), '\0');
  std::size_t next = 0;
  for (std::size_t phase = 0; phase < step; ++phase) {
    for (std::size_t i = phase; i < out.size(); i += step) out[i] = shuffled[next++];
  }
  return out;
}

}  // namespace mulligan
