#include "lab/calibration/consistency.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace mulligan::calibration {

Consistency consistency_of(std::span<const std::vector<int>> answers) {
  if (answers.size() < 2) throw std::invalid_argument("consistency needs two runs or more");
  const std::size_t items = answers.front().size();
  for (const std::vector<int>& run : answers) {
    if (run.size() != items || items == 0) throw std::invalid_argument("every run answers the same items");
  }
  Consistency result;
  const auto runs = static_cast<double>(answers.size());
  double equal_pairs = 0;
  for (std::size_t item = 0; item < items; ++item) {
    std::map<int, std::size_t> counts;
    for (const std::vector<int>& run : answers) ++counts[run[item]];
    std::size_t most = 0;
    for (const auto& [answer, count] : counts) {
      most = std::max(most, count);
      equal_pairs += static_cast<double>(count) * (static_cast<double>(count) - 1) / 2;
    }
    result.most_common.push_back(static_cast<double>(most) / runs);
    result.mean_most_common += result.most_common.back() / static_cast<double>(items);
    if (counts.size() > 1 && !result.first_divergence) result.first_divergence = item;
  }
  result.pairwise = equal_pairs / (runs * (runs - 1) / 2) / static_cast<double>(items);
  return result;
}

Risks find_risks(std::span<const double> consistency, std::span<const double> confidence,
                 std::span<const double> domain_ece, const std::vector<bool>& wrong,
                 const RiskLimits& limits) {
  const std::size_t items = consistency.size();
  if (confidence.size() != items || domain_ece.size() != items || wrong.size() != items)
    throw std::invalid_argument("one value of each kind by item");
  Risks risks;
  for (std::size_t i = 0; i < items; ++i) {
    risks.wrong += wrong[i] ? 1 : 0;
    if (consistency[i] < limits.consistency || confidence[i] < limits.confidence ||
        domain_ece[i] < limits.domain_ece)
      continue;
    risks.items.push_back(i);
    risks.flagged_wrong += wrong[i] ? 1 : 0;
  }
  const auto hits = static_cast<double>(risks.flagged_wrong);
  if (!risks.items.empty()) risks.precision = hits / static_cast<double>(risks.items.size());
  if (risks.wrong > 0) risks.recall = hits / static_cast<double>(risks.wrong);
  return risks;
}

}  // namespace mulligan::calibration
