#include "framework/artifact/rans.h"

#include <algorithm>
#include <bit>

namespace mulligan {
namespace {

static_assert(std::endian::native == std::endian::little, "words are stored as they lie in memory");

void append(std::string& out, std::uint32_t word) {
  out.append(reinterpret_cast<const char*>(&word), sizeof word);
}

}  // namespace

void RansEncoder::finish(std::string& out) {
  std::vector<std::uint32_t> words;
  std::uint64_t state = lowest_state;
  for (std::size_t i = pending_.size(); i-- > 0;) {
    const Places places = pending_[i];
    if (state >= static_cast<std::uint64_t>(places.frequency) << (63 - place_bits)) {
      words.push_back(static_cast<std::uint32_t>(state));
      state >>= 32;
    }
    state = ((state / places.frequency) << place_bits) + state % places.frequency + places.start;
  }
  words.push_back(static_cast<std::uint32_t>(state));
  words.push_back(static_cast<std::uint32_t>(state >> 32));
  append(out, static_cast<std::uint32_t>(words.size()));
  for (std::size_t i = words.size(); i-- > 0;) append(out, words[i]);
  pending_.clear();
}

RansDecoder::RansDecoder(std::string_view& bytes) {
  std::uint32_t count = 0;
  if (bytes.size() < sizeof count) throw std::runtime_error("is truncated");
  std::memcpy(&count, bytes.data(), sizeof count);
  bytes.remove_prefix(sizeof count);
  if (count < 2 || count > bytes.size() / sizeof count) throw std::runtime_error("is truncated");
  words_ = bytes.substr(0, std::size_t{count} * sizeof count);
  bytes.remove_prefix(words_.size());
  const std::uint64_t high = word();
  state_ = high << 32 | word();
  if (state_ < lowest_state || state_ >> 63 != 0) throw std::runtime_error("is corrupt");
}

}  // namespace mulligan
