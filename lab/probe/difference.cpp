#include "lab/probe/difference.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace mulligan::probe {

LogitDifference compare_logits(std::span<const float> reference, std::span<const float> other,
                               std::int64_t vocabulary) {
  const auto width = static_cast<std::size_t>(vocabulary);
  if (width == 0 || reference.size() != other.size() || reference.size() % width != 0) {
    throw std::logic_error("compare_logits: rows of one width on both sides");
  }
  LogitDifference result;
  double squares = 0, largest = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    squares += static_cast<double>(reference[i]) * static_cast<double>(reference[i]);
    const double apart = std::abs(static_cast<double>(reference[i]) - static_cast<double>(other[i]));
    const bool same = std::bit_cast<std::uint32_t>(reference[i]) == std::bit_cast<std::uint32_t>(other[i]);
    if (same) continue;
    largest = std::max(largest, std::isfinite(apart) ? apart : std::numeric_limits<double>::infinity());
  }
  const double rms = reference.empty() ? 0 : std::sqrt(squares / static_cast<double>(reference.size()));
  result.largest_over_rms = largest == 0 ? 0 : largest / rms;
  result.rows = static_cast<std::int64_t>(reference.size() / width);
  for (std::size_t row = 0; row < reference.size(); row += width) {
    const auto highest = [&](std::span<const float> logits) {
      const std::span<const float> part = logits.subspan(row, width);
      return std::ranges::max_element(part) - part.begin();
    };
    if (highest(reference) != highest(other)) ++result.flips;
  }
  return result;
}

Divergence compare_texts(const std::vector<std::vector<std::int32_t>>& reference,
                         const std::vector<std::vector<std::int32_t>>& other) {
  if (reference.size() != other.size()) throw std::logic_error("compare_texts: as many texts on both sides");
  Divergence result;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const auto [here, there] = std::ranges::mismatch(reference[i], other[i]);
    ++result.texts;
    result.mean_index += static_cast<double>(here - reference[i].begin());
    if (here != reference[i].end() || there != other[i].end()) ++result.diverged;
  }
  if (result.texts > 0) result.mean_index /= static_cast<double>(result.texts);
  return result;
}

namespace {

Comparison compare(std::size_t measurement, Comparison::Kind kind, std::string what,
                   const BatchMeasurement& reference, const BatchMeasurement& other,
                   std::int64_t vocabulary) {
  return {measurement, kind, std::move(what), compare_logits(reference.logits, other.logits, vocabulary),
          compare_texts(reference.continued, other.continued)};
}

}  // namespace

std::vector<Comparison> comparisons(const std::vector<Measurement>& measurements) {
  using Kind = Comparison::Kind;
  std::vector<Comparison> result;
  for (std::size_t m = 0; m < measurements.size(); ++m) {
    const Measurement& one = measurements[m];
    const BatchMeasurement& first = one.batches.front();
    for (std::size_t i = 1; i < one.batches.size(); ++i) {
      result.push_back(compare(m, Kind::batch,
                               fmt::format("batch {} to batch {}", one.batches[i].batch, first.batch), first,
                               one.batches[i], one.vocabulary));
    }
    if (!one.setting.empty()) {
      const auto base = std::ranges::find_if(measurements, [&](const Measurement& other) {
        return other.precision == one.precision && other.setting.empty();
      });
      if (base == measurements.end()) throw std::logic_error("comparisons: a setting without its base");
      result.push_back(compare(m, Kind::setting, one.setting, base->batches.front(), first, one.vocabulary));
    } else if (m > 0) {
      const Measurement& exact = measurements.front();
      result.push_back(
          compare(m, Kind::precision, "to " + exact.precision, exact.batches.front(), first, one.vocabulary));
    }
  }
  return result;
}

}  // namespace mulligan::probe
