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

constexpr std::uint64_t draws = 100'000;

double sum_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}
double mean_of(std::span<const double> values) {
  return sum_of(values) / static_cast<double>(values.size());
}

// Counts arrangements of `values` at least as extreme as the one that was `seen`: arrange(add) gives add() the difference of
// each. `as_extreme` of all arrangements are the most extreme ones.
template <typename Arrange>
PermutationTest counted(double seen, std::span<const double> values, bool exact, double as_extreme,
                        Arrange arrange) {
  // Sums of the same numbers in another order may differ in their last bits, and count as equal.
  double slack = 0;
  for (const double value : values) slack = std::max(slack, 1e-12 * std::abs(value));
  std::uint64_t all = 0, two_sided = 0;
  arrange([&](double difference) {
    ++all;
    two_sided += std::abs(difference) >= std::abs(seen) - slack;
  });
  // Drawn arrangements do not hold the one that was seen; it is counted in addition.
  const std::uint64_t own = exact ? 0 : 1;
  const auto whole = static_cast<double>(all + own);
  return {seen, static_cast<double>(two_sided + own) / whole, (exact ? as_extreme : 1) / whole, exact, all};
}

double ways(std::size_t n, std::size_t chosen) {
  double count = 1;
  for (std::size_t i = 1; i <= chosen; ++i)
    count = count * static_cast<double>(n - chosen + i) / static_cast<double>(i);
  return std::round(count);
}

}  // namespace

PermutationTest sign_flip_test(std::span<const double> first, std::span<const double> second) {
  constexpr std::size_t most_exact_pairs = 20;
  const std::size_t n = first.size();
  if (n == 0 || second.size() != n)
    throw std::invalid_argument("a sign-flip test needs as many values of both");
  std::vector<double> differences;
  for (std::size_t i = 0; i < n; ++i) differences.push_back(first[i] - second[i]);
  const bool exact = n <= most_exact_pairs;
  const std::uint64_t arrangements = exact ? std::uint64_t{1} << n : draws;
  const PhiloxStream random(1, "stats/sign_flip");
  return counted(mean_of(differences), differences, exact, 2, [&](auto add) {
    for (std::uint64_t signs = 0; signs < arrangements; ++signs) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const bool flipped = ((exact ? signs >> i : random.bits(signs * n + i)) & 1) != 0;
        sum += flipped ? -differences[i] : differences[i];
      }
      add(sum / static_cast<double>(n));
    }
  });
}

PermutationTest shuffle_test(std::span<const double> first, std::span<const double> second) {
  constexpr double most_exact_deals = 2e5;
  if (first.empty() || second.empty())
    throw std::invalid_argument("a permutation test needs a value of both");
  std::vector<double> pool(first.begin(), first.end());
  pool.insert(pool.end(), second.begin(), second.end());
  const std::size_t n = pool.size(), own = first.size();
  const double total = sum_of(pool);
  const auto difference = [&](double sum) {
    return sum / static_cast<double>(own) - (total - sum) / static_cast<double>(n - own);
  };
  const bool exact = ways(n, own) <= most_exact_deals;
  // Of equal sizes the opposite deal is as extreme.
  return counted(difference(sum_of(first)), pool, exact, 2 * own == n ? 2 : 1, [&](auto add) {
    if (exact) {
      std::vector<char> chosen(n, 0);
      std::fill_n(chosen.begin(), own, 1);
      do {
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += chosen[i] ? pool[i] : 0;
        add(difference(sum));
      } while (std::prev_permutation(chosen.begin(), chosen.end()));
      return;
    }
    const PhiloxStream random(1, "stats/shuffle");
    for (std::uint64_t draw = 0; draw < draws; ++draw) {
      double sum = 0;
      for (std::size_t i = 0; i < own; ++i) {  // the first steps of Fisher and Yates
        const double share = random.uniform(draw * own + i);
        const std::size_t from = i + static_cast<std::size_t>(share * static_cast<double>(n - i));
        std::swap(pool[i], pool[from]);
        sum += pool[i];
      }
      add(difference(sum));
    }
  });
}

Interval bootstrap(std::span<const double> values, double confidence) {
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
  // Interpolated between neighbours.
  const auto percentile = [&](double share) {
    const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(found.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, found.size() - 1);
    return found[below] + (at - static_cast<double>(below)) * (found[above] - found[below]);
  };
  const double mean = mean_of(values), tail = (1 - confidence) / 2;
  const auto below = std::ranges::lower_bound(found, mean) - found.begin();
  const double share = static_cast<double>(below) / static_cast<double>(found.size());
  // Nothing varies on one side: there is no bias to correct.
  if (share <= 0 || share >= 1) return {percentile(tail), percentile(1 - tail)};
  // sum d^3 / (6 (sum d^2)^1.5) over the deviations of the jackknife's means.
  double squares = 0, cubes = 0;
  for (const double value : values) {
    const double d = (value - mean) / static_cast<double>(n - 1);
    squares += d * d;
    cubes += d * d * d;
  }
  const double acceleration = squares > 0 ? cubes / (6 * std::pow(squares, 1.5)) : 0;
  const boost::math::normal normal;
  const double bias = boost::math::quantile(normal, share);
  const auto corrected = [&](double probability) {
    const double z = bias + boost::math::quantile(normal, probability);
    return percentile(boost::math::cdf(normal, bias + z / (1 - acceleration * z)));
  };
  return {corrected(tail), corrected(1 - tail)};
}

}  // namespace mulligan::stats
