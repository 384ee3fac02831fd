// The rules of a try: when a variant is kept, when a run is ended early, and how often either is wrong.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "framework/report/metrics_reader.h"
#include "tools/stats/t_tests.h"

namespace mulligan::tries {

// The probability at each look that a variant without an effect is kept. The sum over the looks of a try is 5 %.
inline constexpr std::array<double, 3> look_alpha = {0.025, 0.0125, 0.0125};

// "keep", "discard" or "undecided" at look number `look` (from 0), by one-sided tests in both directions; `better` is positive
// where the variant is better. What the last look leaves open is discarded.
std::string verdict_of(const stats::TTest& better, std::size_t look);

// A run of the variant is compared with the base's runs after these shares of its budget. A comparison ends a run of a variant
// without an effect with a probability of at most abort_alpha.
inline constexpr std::array<double, 2> abort_fractions = {0.25, 0.5};
inline constexpr double abort_alpha = 0.005;
inline constexpr double abort_margin_nats = 0.02;

// The training loss of a run after this share of its budget, on a straight line between two reports. Empty before the
// report that follows it.
std::optional<double> loss_at(const MetricsHistory& metrics, double fraction);
// The loss above which a run is ended: the upper limit of a prediction interval for a further run of the base (Student's
// t, abort_alpha), and the margin. Empty for fewer than three runs.
std::optional<double> abort_limit(std::span<const double> base_losses);
using AbortLimits = std::array<std::optional<double>, abort_fractions.size()>;
// Why a run with these metrics is ended; empty: it goes on.
std::string why_end(const MetricsHistory& metrics, const AbortLimits& limits);

}  // namespace mulligan::tries
