// Bootstrap intervals: the spread of a statistic over samples drawn anew from the sample.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tools/stats/t_tests.h"

namespace mulligan::stats {

using SampleStatistic = std::function<double(std::span<const double>)>;
double mean_of(std::span<const double> values);

struct BootstrapOptions {
  std::uint64_t draws = 10'000;
  double confidence = 0.95;
  std::uint64_t seed = 1;
};

struct Bootstrap {
  double estimate = 0;  // the statistic of the sample itself
  Interval percentile;
  // Bias-corrected and accelerated (Efron, "Better bootstrap confidence intervals", JASA 1987): bias from the
  // share of draws below the estimate, acceleration from the jackknife. Where nothing varies it is the
  // percentiles'.
  Interval bca;
};

// Two values or more; throws std::invalid_argument otherwise.
Bootstrap bootstrap(std::span<const double> values, const SampleStatistic& statistic = mean_of,
                    const BootstrapOptions& options = {});

// The percentile interval of the mean over seeds of the means over items: seeds are drawn first, then items
// within each drawn seed. Two seeds or more, each with an item.
Interval hierarchical_bootstrap(std::span<const std::vector<double>> items_by_seed,
                                const BootstrapOptions& options = {});

}  // namespace mulligan::stats
