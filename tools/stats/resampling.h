// Tests without distributions: permutation and bootstrap.
#pragma once

#include <cstdint>
#include <span>

#include "tools/stats/t_tests.h"

namespace mulligan::stats {

// Permutation tests of differences of means, and the smallest p that they can reach.
struct PermutationTest {
  double difference = 0;  // of the means, first minus second
  double two_sided = 1;
  double least_two_sided = 1;
  bool exact = true;               // all arrangements were counted
  std::uint64_t arrangements = 0;  // counted, or drawn
};

// Pairs first[i], second[i] with their signs exchanged: all 2^n of them up to n = 20, otherwise 100,000 draws
// with p = (1 + found) / (1 + drawn). As many values of both, at least one; else std::invalid_argument.
PermutationTest sign_flip_test(std::span<const double> first, std::span<const double> second);

// Values dealt anew to both samples: all C(n + m, n) ways up to 200,000, otherwise 100,000 draws. At least
// one value of both.
PermutationTest shuffle_test(std::span<const double> first, std::span<const double> second);

// The bootstrap interval of a mean, from 10,000 samples drawn anew from the sample: bias-corrected and accelerated (Efron, "Better
// bootstrap confidence intervals", JASA 1987), with the jackknife's acceleration; of the percentiles where nothing varies.
// Two values or more, 0 < confidence < 1; throws std::invalid_argument otherwise.
Interval bootstrap(std::span<const double> values, double confidence = 0.95);

}  // namespace mulligan::stats
