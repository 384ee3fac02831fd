// Counts of agreement, families of tests, sizes of effects, and how many runs a test needs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mulligan::stats {

// McNemar's exact test of two classifiers on the same items, of which `only_first` were right for the first
// alone and `only_second` for the second alone: two-sided p of the sign test on those; 1 where there are
// none.
double mcnemar_test(std::uint64_t only_first, std::uint64_t only_second);

// p values adjusted for a family of tests, in their order. Holm: the chance of any false alarm is kept;
// Benjamini and Hochberg: the expected share of false alarms among the alarms.
std::vector<double> holm(std::span<const double> p);
std::vector<double> benjamini_hochberg(std::span<const double> p);

// Hedges' g: the difference of the means in pooled standard deviations, with the correction
// 1 - 3 / (4 (n + m - 2) - 1) for small samples. Two values of both; infinite where nothing varies.
double hedges_g(std::span<const double> first, std::span<const double> second);

// How many runs of each of two conditions a two-sided t test needs to find `effect`, a difference in standard
// deviations other than 0, with probability `power` at `alpha`; by the noncentral t distribution. At most
// 100,000;
// 0: more than that.
std::uint64_t runs_for_power(double effect, double alpha = 0.05, double power = 0.8);

}  // namespace mulligan::stats
