#include "tools/stats/t_tests.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "framework/core/statistic.h"

namespace mulligan::stats {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

void require_confidence(double confidence) {
  require(confidence > 0 && confidence < 1, "a confidence lies between 0 and 1");
}

double variance_of_mean(const Statistic& sample) {
  return *sample.deviation * *sample.deviation / static_cast<double>(sample.n);
}

// (difference - margin) / error, also where nothing varies: then any difference is beyond doubt.
double t_value(double difference, double error) {
  if (error > 0) return difference / error;
  if (difference == 0) return 0;
  return std::copysign(std::numeric_limits<double>::infinity(), difference);
}

TTest finished(double difference, double margin, double error, double degrees, double confidence) {
  require_confidence(confidence);
  TTest test;
  test.difference = difference;
  test.margin = margin;
  test.standard_error = error;
  test.degrees = degrees;
  test.t = t_value(difference - margin, error);
  test.greater = t_cdf(-test.t, degrees);
  test.two_sided = 2 * t_cdf(-std::abs(test.t), degrees);
  const double half = t_quantile(0.5 + confidence / 2, degrees) * error;
  test.interval = {difference - half, difference + half};
  return test;
}

}  // namespace

double t_cdf(double t, double degrees) {
  require(degrees > 0, "a t distribution has degrees of freedom above 0");
  if (std::isinf(t)) return t > 0 ? 1 : 0;
  return boost::math::cdf(boost::math::students_t(degrees), t);
}

double t_quantile(double probability, double degrees) {
  require(degrees > 0, "a t distribution has degrees of freedom above 0");
  require(probability > 0 && probability < 1, "a quantile's probability lies between 0 and 1");
  return boost::math::quantile(boost::math::students_t(degrees), probability);
}

Interval t_interval(std::span<const double> values, double confidence) {
  return one_sample_test(values, 0, 0, confidence).interval;
}

TTest one_sample_test(std::span<const double> values, double number, double margin, double confidence) {
  require(values.size() >= 2, "a t test needs two values");
  const Statistic sample = statistic_of(values);
  return finished(sample.mean - number, margin, std::sqrt(variance_of_mean(sample)),
                  static_cast<double>(sample.n - 1), confidence);
}

TTest paired_test(std::span<const double> first, std::span<const double> second, double margin,
                  double confidence) {
  require(first.size() == second.size(), "a paired test needs as many values of both");
  std::vector<double> differences;
  for (std::size_t i = 0; i < first.size(); ++i) differences.push_back(first[i] - second[i]);
  return one_sample_test(differences, 0, margin, confidence);
}

TTest welch_test(std::span<const double> first, std::span<const double> second, double margin,
                 double confidence) {
  require(first.size() >= 2 && second.size() >= 2, "Welch's test needs two values of both");
  const Statistic a = statistic_of(first), b = statistic_of(second);
  const double va = variance_of_mean(a), vb = variance_of_mean(b);
  const double na = static_cast<double>(a.n - 1), nb = static_cast<double>(b.n - 1);
  const double sum = va + vb;
  const double degrees = sum > 0 ? sum * sum / (va * va / na + vb * vb / nb) : na + nb;
  return finished(a.mean - b.mean, margin, std::sqrt(sum), degrees, confidence);
}

Equivalence equivalence_test(const TTest& test, double margin) {
  require(margin > 0, "an equivalence margin is above 0");
  Equivalence result;
  result.margin = margin;
  result.above_low = t_cdf(-t_value(test.difference + margin, test.standard_error), test.degrees);
  result.below_high = t_cdf(t_value(test.difference - margin, test.standard_error), test.degrees);
  return result;
}

}  // namespace mulligan::stats
