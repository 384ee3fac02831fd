#include "tools/stats/resampling.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "framework/core/philox.h"

namespace mulligan::stats {
namespace {

constexpr std::size_t most_exact_pairs = 20;
constexpr double most_exact_deals = 2e5;
constexpr std::uint64_t draws = 100'000;

// Counts arrangements at least as extreme as the one that was seen. Sums of the same numbers in another order
// may differ in their last bits, and count as equal.
class Tally {
 public:
  Tally(double seen, double scale) : seen_(seen), slack_(1e-12 * scale) {}
  void add(double difference) {
    ++all_;
    if (difference >= seen_ - slack_) ++greater_;
    if (std::abs(difference) >= std::abs(seen_) - slack_) ++two_sided_;
  }
  // Drawn arrangements do not hold the one that was seen; it is counted in addition.
  void fill(PermutationTest& test) const {
    const std::uint64_t own = test.exact ? 0 : 1;
    const auto all = static_cast<double>(all_ + own);
    test.arrangements = all_;
    test.greater = static_cast<double>(greater_ + own) / all;
    test.two_sided = static_cast<double>(two_sided_ + own) / all;
  }

 private:
  double seen_, slack_;
  std::uint64_t all_ = 0, greater_ = 0, two_sided_ = 0;
};

double largest_size(std::span<const double> values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

double ways(std::size_t n, std::size_t chosen) {
  double count = 1;
  for (std::size_t i = 1; i <= chosen; ++i) {
    count = count * static_cast<double>(n - chosen + i) / static_cast<double>(i);
  }
  return std::round(count);
}

}  // namespace

PermutationTest sign_flip_test(std::span<const double> first, std::span<const double> second,
                               std::uint64_t seed) {
  const std::size_t n = first.size();
  if (n == 0 || second.size() != n)
    throw std::invalid_argument("a sign-flip test needs as many values of both");
  std::vector<double> differences;
  for (std::size_t i = 0; i < n; ++i) differences.push_back(first[i] - second[i]);
  const auto count = static_cast<double>(n);
  PermutationTest test;
  test.difference = std::accumulate(differences.begin(), differences.end(), 0.0) / count;
  test.exact = n <= most_exact_pairs;
  Tally tally(test.difference, largest_size(differences));
  const auto add = [&](auto&& flipped) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += flipped(i) ? -differences[i] : differences[i];
    tally.add(sum / count);
  };
  if (test.exact) {
    for (std::uint64_t signs = 0; signs < std::uint64_t{1} << n; ++signs) {
      add([&](std::size_t i) { return (signs >> i & 1) != 0; });
    }
    test.least_greater = std::exp2(-count);
  } else {
    const PhiloxStream random(seed, "stats/sign_flip");
    for (std::uint64_t draw = 0; draw < draws; ++draw) {
      add([&](std::size_t i) { return (random.bits(draw * n + i) & 1) != 0; });
    }
    test.least_greater = 1.0 / (1.0 + static_cast<double>(draws));
  }
  test.least_two_sided = test.exact ? 2 * test.least_greater : test.least_greater;
  tally.fill(test);
  return test;
}

PermutationTest shuffle_test(std::span<const double> first, std::span<const double> second,
                             std::uint64_t seed) {
  if (first.empty() || second.empty())
    throw std::invalid_argument("a permutation test needs a value of both");
  std::vector<double> pool(first.begin(), first.end());
  pool.insert(pool.end(), second.begin(), second.end());
  const std::size_t n = pool.size(), own = first.size();
  const double total = std::accumulate(pool.begin(), pool.end(), 0.0);
  const auto difference = [&](double sum) {
    return sum / static_cast<double>(own) - (total - sum) / static_cast<double>(n - own);
  };
  PermutationTest test;
  test.difference = difference(std::accumulate(first.begin(), first.end(), 0.0));
  const double deals = ways(n, own);
  test.exact = deals <= most_exact_deals;
  Tally tally(test.difference, largest_size(pool));
  if (test.exact) {
    std::vector<char> chosen(n, 0);
    std::fill(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(own), 1);
    do {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += chosen[i] ? pool[i] : 0;
      tally.add(difference(sum));
    } while (std::prev_permutation(chosen.begin(), chosen.end()));
    test.least_greater = 1 / deals;
    // Of equal sizes the opposite deal is as extreme.
    test.least_two_sided = (2 * own == n ? 2 : 1) / deals;
  } else {
    const PhiloxStream random(seed, "stats/shuffle");
    for (std::uint64_t draw = 0; draw < draws; ++draw) {
      double sum = 0;
      for (std::size_t i = 0; i < own; ++i) {  // the first steps of Fisher and Yates
        const double share = random.uniform(draw * own + i);
        const std::size_t from = i + static_cast<std::size_t>(share * static_cast<double>(n - i));
        std::swap(pool[i], pool[from]);
        sum += pool[i];
      }
      tally.add(difference(sum));
    }
    test.least_greater = test.least_two_sided = 1.0 / (1.0 + static_cast<double>(draws));
  }
  tally.fill(test);
  return test;
}

namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
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

// sum d^3 / (6 (sum d^2)^1.5) over the deviations of the jackknife's means; 0 where nothing varies.
double acceleration(std::span<const double> values) {
  const double mean = mean_of(values), others = static_cast<double>(values.size() - 1);
  double squares = 0, cubes = 0;
  for (const double value : values) {
    const double d =
        (value - mean) / others;  // of the mean without `value`, which is as far on the other side
    squares += d * d;
    cubes += d * d * d;
  }
  return squares > 0 ? cubes / (6 * std::pow(squares, 1.5)) : 0;
}

}  // namespace

Bootstrap bootstrap(std::span<const double> values, double confidence) {
  const std::size_t n = values.size();
  if (n < 2 || confidence <= 0 || confidence >= 1)
    throw std::invalid_argument("a bootstrap needs two values and a confidence between 0 and 1");
  constexpr std::uint64_t resamples = 10'000;
  const PhiloxStream random(1, "stats/bootstrap");
  std::vector<double> drawn(n), found;
  for (std::uint64_t draw = 0; draw < resamples; ++draw) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(random.uniform(draw * n + i) * static_cast<double>(n));
      drawn[i] = values[std::min(at, n - 1)];
    }
    found.push_back(mean_of(drawn));
  }
  std::ranges::sort(found);
  Bootstrap result;
  result.estimate = mean_of(values);
  const double tail = (1 - confidence) / 2;
  result.bca = result.percentile = percentiles(found, tail, 1 - tail);

  const auto below = std::ranges::lower_bound(found, result.estimate) - found.begin();
  const double share = static_cast<double>(below) / static_cast<double>(found.size());
  if (share <= 0 || share >= 1) return result;  // nothing varies on one side: there is no bias to correct
  const boost::math::normal normal;
  const double bias = boost::math::quantile(normal, share), a = acceleration(values);
  const auto corrected = [&](double probability) {
    const double z = bias + boost::math::quantile(normal, probability);
    return boost::math::cdf(normal, bias + z / (1 - a * z));
  };
  result.bca = percentiles(found, corrected(tail), corrected(1 - tail));
  return result;
}

}  // namespace mulligan::stats
