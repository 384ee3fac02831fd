// Copies with so many changes that hardly a long window of them is left whole.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/data/hashed_windows.h"

namespace mulligan {

// Windows of 10 letters say little one by one: two texts of a language share many. But where in a stretch of 64 letters of
// the training text 30 % of all windows are of one and the same passage of the validation text, that stretch was
// taken from it. Such windows are marked; how often they stand in the training text makes no difference, so no
// number of copies makes a passage a common phrase.
class NearCopies {
 public:
  static constexpr std::size_t window_units = 10;

  // `passages`: the units (TextUnits) of each passage of the validation text; `total`: of all.
  NearCopies(const std::vector<std::span<const std::uint8_t>>& passages, std::size_t total);
  // Looks through training text. May be called from several threads; their order changes nothing.
  void read(std::span<const std::uint8_t> units);
  // Whether in the text alone `share` of the windows of a passage would be marked. As above of threads.
  bool holds_a_passage(std::span<const std::uint8_t> units, double share) const;
  // Of each passage the share of its windows that are marked; 0 where too few of them say anything.
  std::vector<double> shares() const;

 private:
  struct Window {
    std::uint32_t scored = 0;   // times in the validation text
    std::uint32_t passage = 0;  // the last one that it stands in
    std::atomic<bool> marked{false};
    Window() = default;
  };
  // visit(place) of each window that is to be marked, once or more.
  template <typename Visit>
  void each_marked(std::span<const std::uint8_t> units, Visit&& visit) const;

  std::uint64_t skip_ = 0;        // windows are compared whose key has none of these bits
  std::size_t stretch_, needed_;  // units, and windows of one passage in them
  std::uint32_t usual_ = 1;       // times that a window stands in the validation text: the median
  WindowKeys keys_;
  std::vector<Window> table_;                       // by place
  std::vector<std::vector<std::size_t>> passages_;  // places of the windows of each
};

}  // namespace mulligan
