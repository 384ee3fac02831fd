#include "tools/stats/t_tests.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "framework/core/statistic.h"

namespace mulligan::stats {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

double variance_of_mean(const Statistic& sample) {
  return *sample.deviation * *sample.deviation / static_cast<double>(sample.n);
}

// difference / deviation, also where nothing varies: then any difference is beyond doubt.
double in_deviations(double difference, double deviation) {
  if (deviation > 0) return difference / deviation;
  if (difference == 0) return 0;
  return std::copysign(std::numeric_limits<double>::infinity(), difference);
}

TTest finished(double difference, double margin, double error, double degrees, double confidence) {
  require(confidence > 0 && confidence < 1, "a confidence lies between 0 and 1");
  const double t = in_deviations(difference - margin, error);
  const double half = t_quantile(0.5 + confidence / 2, degrees) * error;
  return {difference,
          error,
          t,
          degrees,
          t_cdf(-t, degrees),
          2 * t_cdf(-std::abs(t), degrees),
          {difference - half, difference + half}};
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
  return one_sample_test(values, 0, confidence).interval;
}

TTest one_sample_test(std::span<const double> values, double margin, double confidence) {
  require(values.size() >= 2, "a t test needs two values");
  const Statistic sample = statistic_of(values);
  return finished(sample.mean, margin, std::sqrt(variance_of_mean(sample)), static_cast<double>(sample.n - 1),
                  confidence);
}

TTest paired_test(std::span<const double> first, std::span<const double> second, double margin,
                  double confidence) {
  require(first.size() == second.size(), "a paired test needs as many values of both");
  std::vector<double> differences;
  for (std::size_t i = 0; i < first.size(); ++i) differences.push_back(first[i] - second[i]);
  return one_sample_test(differences, margin, confidence);
}

TTest welch_test(std::span<const double> first, std::span<const double> second, double margin,
                 double confidence) {
  require(first.size() >= 2 && second.size() >= 2, "Welch's test needs two values of both");
  const Statistic a = statistic_of(first), b = statistic_of(second);
  const double va = variance_of_mean(a), vb = variance_of_mean(b), sum = va + vb;
  const double na = static_cast<double>(a.n - 1), nb = static_cast<double>(b.n - 1);
  const double degrees = sum > 0 ? sum * sum / (va * va / na + vb * vb / nb) : na + nb;
  return finished(a.mean - b.mean, margin, std::sqrt(sum), degrees, confidence);
}

double equivalence_test(const TTest& test, double margin) {
  require(margin > 0, "an equivalence margin is above 0");
  const auto p = [&](double distance) {
    return t_cdf(in_deviations(distance, test.standard_error), test.degrees);
  };
  return std::max(p(-(test.difference + margin)), p(test.difference - margin));
}

double mcnemar_test(std::uint64_t only_first, std::uint64_t only_second) {
  const std::uint64_t all = only_first + only_second;
  if (all == 0) return 1;
  const boost::math::binomial coin(static_cast<double>(all), 0.5);
  return std::min(1.0, 2 * boost::math::cdf(coin, static_cast<double>(std::min(only_first, only_second))));
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> adjusted(p.size());
  double most = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    most = std::max(most, std::min(1.0, static_cast<double>(p.size() - rank) * p[order[rank]]));
    adjusted[order[rank]] = most;
  }
  return adjusted;
}

double smallest_difference(std::uint64_t pairs, double alpha, double power) {
  require(pairs >= 2, "a paired test needs two pairs");
  require(alpha > 0 && alpha < 1 && power > alpha && power < 1, "a power lies between alpha and 1");
  const auto n = static_cast<double>(pairs);
  const double critical = t_quantile(1 - alpha, n - 1);
  double low = 0, high = critical + 10;
  for (int halving = 0; halving < 50; ++halving) {
    const double middle = (low + high) / 2;
    const boost::math::non_central_t found(n - 1, middle * std::sqrt(n));
    (boost::math::cdf(boost::math::complement(found, critical)) < power ? low : high) = middle;
  }
  return high;
}

}  // namespace mulligan::stats
