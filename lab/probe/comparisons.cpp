#include "lab/probe/comparisons.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace mulligan::probe {
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
