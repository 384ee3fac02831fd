#include "framework/data/near_copies.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace mulligan {
namespace {

constexpr std::size_t shortest_stretch = 64;
constexpr double needed_share = 0.3;

}  // namespace

NearCopies::NearCopies(const std::vector<std::span<const std::uint8_t>>& passages, std::size_t total) {
  const int bits = skipped_bits(total);
  skip_ = ~(~std::uint64_t{0} >> bits);
  // Of fewer windows a longer stretch, in which there are some.
  stretch_ = shortest_stretch << (bits / 2);
  needed_ = static_cast<std::size_t>(std::ceil(needed_share * static_cast<double>(stretch_ >> bits)));
  keys_ = WindowKeys(total >> bits);
  table_ = std::vector<Window>(keys_.size());
  for (const std::span<const std::uint8_t> passage : passages) {
    std::vector<std::size_t>& places = passages_.emplace_back();
    each_hashed_window(passage, window_units, skip_, [&](std::size_t, std::uint64_t key) {
      places.push_back(keys_.add(key));
      Window& window = table_[places.back()];
      window.passage = static_cast<std::uint32_t>(passages_.size());
      ++window.scored;
    });
  }
  std::vector<std::uint32_t> times;
  for (const Window& window : table_)
    if (window.scored > 0) times.push_back(window.scored);
  usual_ = median(times);
}

template <typename Visit>
void NearCopies::each_marked(std::span<const std::uint8_t> units, Visit&& visit) const {
  struct Found {
    std::size_t first, place;
    std::uint32_t passage;
  };
  std::vector<Found> found;  // those of the last stretch from `begin` on
  std::size_t begin = 0;
  each_hashed_window(units, window_units, skip_, [&](std::size_t first, std::uint64_t key) {
    const std::size_t place = keys_.find(key);
    if (place == WindowKeys::none || table_[place].scored > 2 * usual_) return;
    const Window& window = table_[place];
    while (begin < found.size() && found[begin].first + stretch_ <= first) ++begin;
    if (begin > 4 * stretch_) {
      found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(begin));
      begin = 0;
    }
    found.push_back({first, place, window.passage});
    const auto last = std::span(found).subspan(begin);
    if (static_cast<std::size_t>(std::ranges::count(last, window.passage, &Found::passage)) < needed_) return;
    for (const Found& one : last)
      if (one.passage == window.passage) visit(one.place);
  });
}

void NearCopies::read(std::span<const std::uint8_t> units) {
  each_marked(units, [&](std::size_t place) { table_[place].marked.store(true, std::memory_order_relaxed); });
}

bool NearCopies::holds_a_passage(std::span<const std::uint8_t> units, double share) const {
  std::unordered_set<std::size_t> marked;
  each_marked(units, [&](std::size_t place) { marked.insert(place); });
  std::unordered_map<std::uint32_t, std::size_t> of_passage;
  for (const std::size_t place : marked) ++of_passage[table_[place].passage];
  return std::ranges::any_of(of_passage, [&](const auto& one) {
    return static_cast<double>(one.second) >= share * static_cast<double>(passages_[one.first - 1].size());
  });
}

std::vector<double> NearCopies::shares() const {
  std::vector<double> shares;
  for (const std::vector<std::size_t>& passage : passages_) {
    std::size_t compared = 0, marked = 0;
    for (const std::size_t place : passage) {
      const Window& window = table_[place];
      if (window.scored > 2 * usual_) continue;
      ++compared;
      marked += window.marked.load(std::memory_order_relaxed) ? 1 : 0;
    }
    const bool undecided = compared == 0 || compared * 4 < passage.size();  // little but common phrases
    shares.push_back(undecided ? 0 : static_cast<double>(marked) / static_cast<double>(compared));
  }
  return shares;
}

}  // namespace mulligan
