// Student's t: intervals and tests of means. Distributions are Boost.Math's.
#pragma once

#include <span>

namespace mulligan::stats {

struct Interval {
  double low = 0, high = 0;
};

// A test whether a mean, or a difference of means, exceeds `margin`.
struct TTest {
  double difference = 0;      // estimate, in the samples' unit; of two samples first minus second
  double margin = 0;          // of the null hypothesis: difference <= margin
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

// Of the mean; two values or more, 0 < confidence < 1. Throws std::invalid_argument otherwise, as all below
// do.
Interval t_interval(std::span<const double> values, double confidence = 0.95);

// Mean of `values` against a number without error.
TTest one_sample_test(std::span<const double> values, double number, double margin = 0,
                      double confidence = 0.95);
// first[i] against second[i]: as many values, two or more. Legitimate where value i of both shares its
// randomness.
TTest paired_test(std::span<const double> first, std::span<const double> second, double margin = 0,
                  double confidence = 0.95);
// Two independent samples with variances of their own, two values each or more; Satterthwaite's degrees.
TTest welch_test(std::span<const double> first, std::span<const double> second, double margin = 0,
                 double confidence = 0.95);

// Two one-sided tests: whether a difference lies within -margin and +margin.
struct Equivalence {
  double margin = 0;
  double above_low = 1;   // p of difference > -margin
  double below_high = 1;  // p of difference < margin
  double p() const { return above_low > below_high ? above_low : below_high; }
};
// Of the difference that `test` estimated (whatever its margin). margin > 0.
Equivalence equivalence_test(const TTest& test, double margin);

}  // namespace mulligan::stats
