#include "framework/artifact/rans.h"

#include <algorithm>
#include <bit>
#include <numeric>

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

namespace {

// Beyond, all counts are halved: half a million symbols are remembered.
constexpr std::uint32_t largest_total = std::uint32_t{1} << 24;
constexpr std::uint32_t longest_interval = 2048;

}  // namespace

void SymbolTable::start(const std::array<std::uint32_t, symbols>& weights, std::uint32_t strength) {
  const std::uint64_t sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  for (int i = 0; i < symbols; ++i) {
    counts_[i] = static_cast<std::uint32_t>(weights[i] * std::uint64_t{strength} * increment / sum) + 1;
  }
  rebuild();
}

void SymbolTable::rebuild() {
  total_ = std::accumulate(counts_.begin(), counts_.end(), std::uint32_t{0});
  if (total_ > largest_total) {
    for (std::uint32_t& count : counts_) count = (count + 1) / 2;
    total_ = std::accumulate(counts_.begin(), counts_.end(), std::uint32_t{0});
  }
  // Every symbol keeps a place; what rounding leaves over goes to the most frequent.
  std::uint32_t left = place_count;
  for (int i = 0; i < symbols; ++i) {
    frequency_[i] =
        static_cast<std::uint16_t>(1 + std::uint64_t{counts_[i]} * (place_count - symbols) / total_);
    left -= frequency_[i];
  }
  const auto most = std::ranges::max_element(frequency_);
  *most = static_cast<std::uint16_t>(*most + left);
  std::uint32_t place = 0;
  std::uint32_t group = 0;
  for (int i = 0; i < symbols; ++i) {
    start_[i] = static_cast<std::uint16_t>(place);
    place += frequency_[i];
    for (; group < first_.size() && group << group_bits < place; ++group) {
      first_[group] = static_cast<std::uint8_t>(i);
    }
  }
  until_rebuild_ = std::clamp(total_ / increment / 8, std::uint32_t{8}, longest_interval);
}

}  // namespace mulligan
