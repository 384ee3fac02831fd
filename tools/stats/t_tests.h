// Student's t: intervals and tests of means. Distributions are Boost.Math's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mulligan::stats {

struct Interval {
  double low = 0, high = 0;
};

// A test whether a mean, or a difference of means, exceeds `margin`.
struct TTest {
  double difference = 0;      // estimate, in the samples' unit; of two samples first minus second
  double standard_error = 0;  // of the difference
  double t = 0;          // (difference - margin) / standard_error; infinite where the samples do not vary
  double degrees = 0;    // of freedom
  double greater = 1;    // p of the one-sided test: difference > margin
  double two_sided = 1;  // p of difference != margin
  Interval interval;     // of the difference, with the confidence that was asked for
};

// P(T <= t) with `degrees` > 0 of freedom; t may be infinite.
double t_cdf(double t, double degrees);
// The t that P(T <= t) = `probability` has; 0 < probability < 1.
double t_quantile(double probability, double degrees);

// Of the mean; two values or more, 0 < confidence < 1. All below throw std::invalid_argument otherwise.
Interval t_interval(std::span<const double> values, double confidence = 0.95);

// Mean of `values` against 0.
TTest one_sample_test(std::span<const double> values, double margin = 0, double confidence = 0.95);
// first[i] against second[i]: as many values, two or more, where value i of both shares its randomness.
TTest paired_test(std::span<const double> first, std::span<const double> second, double margin = 0,
                  double confidence = 0.95);
// Two independent samples with variances of their own, two values each or more; Satterthwaite's degrees.
TTest welch_test(std::span<const double> first, std::span<const double> second, double margin = 0,
                 double confidence = 0.95);

// p of two one-sided tests whether the difference that `test` estimated lies within -margin and +margin. margin > 0.
double equivalence_test(const TTest& test, double margin);

// McNemar's exact two-sided test of two classifiers on the same items. `only_first` items were right for the first alone,
// `only_second` for the second alone. 1 where both are 0.
double mcnemar_test(std::uint64_t only_first, std::uint64_t only_second);

// p values adjusted for a family of tests, in their order, by Holm: the chance of any false alarm is kept.
std::vector<double> holm(std::span<const double> p);

// The smallest mean difference that a one-sided paired t test of `pairs` (two or more) finds with probability `power`
// at `alpha`, in standard deviations of the pairs' differences.
double smallest_difference(std::uint64_t pairs, double alpha, double power = 0.8);

}  // namespace mulligan::stats
