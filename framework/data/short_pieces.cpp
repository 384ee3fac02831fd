#include "framework/data/short_pieces.h"

#include <algorithm>
#include <random>

namespace mulligan {
namespace {

constexpr std::size_t passage_units = 512, most_passages = 128, fewest_passages = 16;
constexpr double whole_share = 0.95, torn_share = 0.35, shortest_limit = 0.4;

}  // namespace

ShortPieces::ShortPieces(const std::vector<std::vector<std::uint8_t>>& texts, std::uint64_t training_tokens) {
  const std::size_t first = training_tokens <= std::uint64_t{1} << 24   ? 10
                            : training_tokens <= std::uint64_t{1} << 28 ? 12
                                                                        : 14;
  width_ = {first, first + 2, first + 6, first + 8, first + 14, first + 22};
  const std::size_t around = width_.back();
  std::vector<std::pair<std::size_t, std::size_t>> places;  // text, and where in it
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t at = 0; at + passage_units <= texts[i].size(); at += passage_units)
      places.emplace_back(i, at);
  }
  if (places.size() < fewest_passages) return;
  std::shuffle(places.begin(), places.end(), std::random_device());
  places.resize(std::min(places.size(), most_passages));
  for (const auto& [text, at] : places) {
    const std::size_t begin = at - std::min(at, around);
    const std::size_t end = std::min(at + passage_units + around, texts[text].size());
    passages_.push_back({{texts[text].begin() + static_cast<std::ptrdiff_t>(begin),
                          texts[text].begin() + static_cast<std::ptrdiff_t>(end)},
                         at - begin,
                         at - begin + passage_units});
  }
  const std::size_t windows = passages_.size() * (passage_units + 2 * around);
  narrow_ = WindowKeys(windows);
  wider_ = WindowKeys((widths - 1) * windows);
  found_ = std::vector<std::atomic<bool>>(narrow_.size() + wider_.size());
  for (const Passage& passage : passages_) {
    for (const std::size_t width : width_)
      each_hashed_window(passage.units, width, 0, [&](std::size_t, std::uint64_t key) {
        (width == width_.front() ? narrow_ : wider_).add(key);
      });
  }
}

template <typename Visit>
void ShortPieces::each_known(std::span<const std::uint8_t> units, Visit&& visit) const {
  each_hashed_window(units, width_.front(), 0, [&](std::size_t first, std::uint64_t key) {
    // What begins with an unknown window is not known either.
    for (std::size_t i = 0;; key = window_key(units.subspan(first, width_[i]))) {
      const std::size_t place = (i == 0 ? narrow_ : wider_).find(key);
      if (place == WindowKeys::none) return;
      visit(first, i, i == 0 ? place : narrow_.size() + place);
      if (++i == widths || first + width_[i] > units.size()) return;
    }
  });
}

void ShortPieces::read(std::span<const std::uint8_t> units) {
  if (passages_.empty()) return;
  each_known(units, [&](std::size_t, std::size_t, std::size_t place) {
    found_[place].store(true, std::memory_order_relaxed);
  });
}

double ShortPieces::share() const {
  std::size_t pieced = 0, shortest = 0;
  for (const Passage& passage : passages_) {
    std::array<std::size_t, widths> covered{}, until{};
    until.fill(passage.begin);
    each_known(passage.units, [&](std::size_t first, std::size_t i, std::size_t place) {
      if (!found_[place].load(std::memory_order_relaxed)) return;
      const std::size_t end = std::min(first + width_[i], passage.end), begin = std::max(first, until[i]);
      if (end <= begin) return;
      covered[i] += end - begin;
      until[i] = end;
    });
    const auto torn = [&](std::size_t narrow, std::size_t wide) {
      const auto share = [&](std::size_t i) { return static_cast<double>(covered[i]) / passage_units; };
      return share(narrow) >= whole_share && share(narrow) - share(wide) >= torn_share;
    };
    const bool long_ones = torn(1, 3) || torn(2, 4) || torn(4, 5);
    pieced += long_ones ? 1 : 0;
    shortest += long_ones || torn(0, 3) ? 1 : 0;
  }
  const auto all = static_cast<double>(std::max<std::size_t>(passages_.size(), 1));
  const double short_share = static_cast<double>(shortest) / all;
  return short_share > shortest_limit ? short_share : static_cast<double>(pieced) / all;
}

}  // namespace mulligan
