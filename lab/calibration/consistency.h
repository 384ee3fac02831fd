// Whether runs that differ in seed, precision or batch size give the same answers, and where they are wrong
// and sure of it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lab/calibration/calibration.h"

namespace mulligan::calibration {

// Of several runs on the same items.
struct Consistency {
  // Share of the commonest answer among the runs, by item; and its mean over the items.
  std::vector<double> most_common;
  double mean_most_common = 0;
  double pairwise = 0;  // share of equal answers, mean over all pairs of runs
  // The first item that two runs answer differently, counted from 0: of tokens in a row the place where they
  // part. Absent: they never do.
  std::optional<std::size_t> first_divergence;
};

// `answers` by run, then by item: two runs or more of one item or more. Throws std::invalid_argument for
// other shapes.
Consistency consistency_of(std::span<const std::vector<int>> answers);

// What makes an item suspicious: the runs agree, they are sure, and their domain is known to be badly
// calibrated.
struct RiskLimits {
  double consistency = 0.8, confidence = 0.8, domain_ece = 0.10;
};
struct Risks {
  std::vector<std::size_t> items;  // flagged
  std::size_t wrong = 0;           // of all items
  std::size_t flagged_wrong = 0;
  std::optional<double> precision, recall;  // absent where nothing is flagged, or nothing is wrong
};
// By item: share of the commonest answer, mean confidence, ECE of the item's domain, and whether the answer
// is wrong. Equal lengths, else std::invalid_argument.
Risks find_risks(std::span<const double> consistency, std::span<const double> confidence,
                 std::span<const double> domain_ece, const std::vector<bool>& wrong,
                 const RiskLimits& limits = {});

}  // namespace mulligan::calibration
