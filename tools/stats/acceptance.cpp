#include "tools/stats/acceptance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace mulligan::stats {
namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

bool counts_a_run_twice(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  if (sorted.size() > 1 && sorted.front() == sorted.back()) return true;
  const auto rounded = [](double value) { return std::abs(value * 1e6 - std::round(value * 1e6)) < 1e-6; };
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] == sorted[i - 1] && !rounded(sorted[i])) return true;
  }
  return false;
}

std::vector<std::size_t> collapsed_values(const std::vector<double>& bpb) {
  std::vector<std::size_t> found;
  if (bpb.size() < 2) return found;
  // Of two values the lower one stands for what is usual.
  const double usual = bpb.size() == 2 ? *std::ranges::min_element(bpb) : median(bpb);
  std::vector<double> distances;
  for (const double value : bpb) distances.push_back(std::abs(value - usual));
  const double deviation = bpb.size() < 3 ? 0 : median(distances);
  const double most_above = deviation > 0 ? std::min(0.02, 5 * deviation) : 0.02;
  for (std::size_t i = 0; i < bpb.size(); ++i) {
    if (bpb[i] - usual > most_above) found.push_back(i);
  }
  return found;
}

Acceptance accept_record(const std::vector<double>& new_bpb, const std::vector<double>& reference_bpb,
                         const AcceptanceRule& rule) {
  if (new_bpb.size() < 2) throw std::invalid_argument("a record needs two runs or more: one has no variance");
  if (reference_bpb.empty()) throw std::invalid_argument("a record needs a reference to beat");
  if (!(rule.bytes_per_token > 0)) throw std::invalid_argument("bytes per token are above 0");
  for (const auto* values : {&new_bpb, &reference_bpb}) {
    if (!std::ranges::all_of(*values, [](double value) { return std::isfinite(value); }))
      throw std::invalid_argument("bits per byte are finite numbers");
  }
  const double nats = std::numbers::ln2 * rule.bytes_per_token;
  const auto in_nats = [&](std::vector<double> values) {
    for (double& value : values) value *= nats;
    return values;
  };
  const std::vector<double> ours = in_nats(new_bpb), theirs = in_nats(reference_bpb);
  Acceptance result;
  std::string kind;
  if (theirs.size() == 1) {
    std::vector<double> below;  // how far each run is below the published number
    for (const double value : ours) below.push_back(theirs.front() - value);
    result.test = one_sample_test(below, rule.margin_nats);
    kind = "one-sample t test";
    result.notes.push_back("the reference is a single number: its own variance is not known and counts as 0");
  } else if (rule.paired) {
    result.test = paired_test(theirs, ours, rule.margin_nats);
    kind = "paired t test";
    result.notes.push_back("pairs are legitimate only where runs of one seed share their randomness");
  } else {
    result.test = welch_test(theirs, ours, rule.margin_nats);
    kind = "Welch's t test";
  }
  if (ours.size() < 3) result.notes.push_back("fewer than three new runs are not reportable");
  for (const auto& [whose, values] : {std::pair{"new", &new_bpb}, std::pair{"reference", &reference_bpb}}) {
    std::vector<std::string> collapsed;
    for (const std::size_t i : collapsed_values(*values))
      collapsed.push_back(fmt::format("{:.5f}", (*values)[i]));
    if (!collapsed.empty())
      result.notes.push_back(fmt::format(
          "{} of the {} runs stand out upwards ({} bits per byte): collapsed runs count like the others",
          collapsed.size(), whose, fmt::join(collapsed, ", ")));
  }
  result.difference_bpb = result.test.difference / nats;
  result.interval_bpb = {result.test.interval.low / nats, result.test.interval.high / nats};
  const bool enough = result.test.difference >= rule.margin_nats;
  const bool twice = counts_a_run_twice(new_bpb) || (theirs.size() > 1 && counts_a_run_twice(reference_bpb));
  result.accepted = enough && result.test.greater < rule.alpha && ours.size() >= 3 && !twice;
  const std::string why =
      !enough ? fmt::format("the mean is better by {:.4f} nats, less than the {:.4f} that a record needs",
                            result.test.difference, rule.margin_nats)
      : !result.accepted && ours.size() < 3 ? "fewer than three runs"
      : twice ? "values that are equal to the last digit are of one run, which counts once"
              : fmt::format("better by more than {:.4f} nats with p = {:.2g}, {} the limit of {:g}",
                            rule.margin_nats, result.test.greater, result.accepted ? "below" : "not below",
                            rule.alpha);
  result.decision = fmt::format(
      "{}: {} (difference {:+.4f} nats per token, 95 % from {:+.4f} to {:+.4f}; {:+.5f} bits "
      "per byte; {}, t = {:.3g}, {:.3g} degrees of freedom).",
      result.accepted ? "ACCEPT" : "REJECT", why, result.test.difference, result.test.interval.low,
      result.test.interval.high, result.difference_bpb, kind, result.test.t, result.test.degrees);
  return result;
}

}  // namespace mulligan::stats
