// Whether the order of tokens means anything: D37.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// What pairs of neighbours in a sample say. Text repeats its pairs many times as often as tokens drawn by chance in
// the same shares would, and prefers (a, b) to (b, a) as other text of its kind does.
struct PairOrder {
  std::uint64_t pairs = 0;  // of the training sample
  double repeated =
      0;  // how often two of its pairs are equal, as a multiple of what chance gives; 0: too few
  double forward =
      0;  // how often a pair of it is one of the other sample, and the same read backwards: shares
  double backward = 0;  // both 0 without another sample
};
PairOrder pair_order(std::span<const std::vector<std::uint16_t>> pieces,
                     std::span<const std::vector<std::uint16_t>> others);

// D37: `training` against itself and the validation data, which may be empty.
Finding judge_order(const PairOrder& seen);

}  // namespace mulligan::doctor
