#include "framework/artifact/symbol_table.h"

#include <algorithm>
#include <numeric>

namespace mulligan {
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
