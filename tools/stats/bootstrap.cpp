#include "tools/stats/bootstrap.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "framework/core/philox.h"

namespace mulligan::stats {
namespace {

std::size_t drawn_index(const PhiloxStream& random, std::uint64_t index, std::size_t size) {
  const auto drawn = static_cast<std::size_t>(random.uniform(index) * static_cast<double>(size));
  return std::min(drawn, size - 1);
}

// Of sorted values, interpolated between neighbours.
double percentile(std::span<const double> sorted, double share) {
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Interval percentiles(std::span<const double> sorted, double low, double high) {
  return {percentile(sorted, low), percentile(sorted, high)};
}

// sum d^3 / (6 (sum d^2)^1.5) of the jackknife's deviations; 0 where nothing varies.
double acceleration(std::span<const double> values, const SampleStatistic& statistic) {
  std::vector<double> left_out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<double> rest(values.begin(), values.end());
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    left_out.push_back(statistic(rest));
  }
  const double mean = mean_of(left_out);
  double squares = 0, cubes = 0;
  for (const double value : left_out) {
    const double d = mean - value;
    squares += d * d;
    cubes += d * d * d;
  }
  return squares > 0 ? cubes / (6 * std::pow(squares, 1.5)) : 0;
}

void require_options(const BootstrapOptions& options) {
  if (options.draws == 0 || options.confidence <= 0 || options.confidence >= 1) {
    throw std::invalid_argument("a bootstrap needs draws and a confidence between 0 and 1");
  }
}

}  // namespace

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Bootstrap bootstrap(std::span<const double> values, const SampleStatistic& statistic,
                    const BootstrapOptions& options) {
  require_options(options);
  const std::size_t n = values.size();
  if (n < 2) throw std::invalid_argument("a bootstrap needs two values");
  const PhiloxStream random(options.seed, "stats/bootstrap");
  std::vector<double> drawn(n), found;
  for (std::uint64_t draw = 0; draw < options.draws; ++draw) {
    for (std::size_t i = 0; i < n; ++i) drawn[i] = values[drawn_index(random, draw * n + i, n)];
    found.push_back(statistic(drawn));
  }
  std::ranges::sort(found);
  Bootstrap result;
  result.estimate = statistic(values);
  const double tail = (1 - options.confidence) / 2;
  result.bca = result.percentile = percentiles(found, tail, 1 - tail);

  const auto below = std::ranges::lower_bound(found, result.estimate) - found.begin();
  const double share = static_cast<double>(below) / static_cast<double>(found.size());
  if (share <= 0 || share >= 1) return result;  // nothing varies on one side: there is no bias to correct
  const boost::math::normal normal;
  const double bias = boost::math::quantile(normal, share);
  const double a = acceleration(values, statistic);
  const auto corrected = [&](double probability) {
    const double z = bias + boost::math::quantile(normal, probability);
    return boost::math::cdf(normal, bias + z / (1 - a * z));
  };
  result.bca = percentiles(found, corrected(tail), corrected(1 - tail));
  return result;
}

Interval hierarchical_bootstrap(std::span<const std::vector<double>> items_by_seed,
                                const BootstrapOptions& options) {
  require_options(options);
  const std::size_t seeds = items_by_seed.size();
  const bool empty = std::ranges::any_of(items_by_seed, [](const auto& items) { return items.empty(); });
  if (seeds < 2 || empty) throw std::invalid_argument("a hierarchical bootstrap needs two seeds with items");
  const PhiloxStream random(options.seed, "stats/hierarchical_bootstrap");
  std::uint64_t next = 0;
  std::vector<double> found;
  for (std::uint64_t draw = 0; draw < options.draws; ++draw) {
    double sum = 0;
    for (std::size_t i = 0; i < seeds; ++i) {
      const std::vector<double>& items = items_by_seed[drawn_index(random, next++, seeds)];
      double within = 0;
      for (std::size_t j = 0; j < items.size(); ++j)
        within += items[drawn_index(random, next++, items.size())];
      sum += within / static_cast<double>(items.size());
    }
    found.push_back(sum / static_cast<double>(seeds));
  }
  std::ranges::sort(found);
  const double tail = (1 - options.confidence) / 2;
  return percentiles(found, tail, 1 - tail);
}

}  // namespace mulligan::stats
