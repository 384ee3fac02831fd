#include "plugins/quantizers/gptq/saliency.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <ranges>
#include <utility>

namespace mulligan {

std::vector<double> group_scores(const mlg_quantize_tensor& tensor, std::int64_t size) {
  std::vector<double> magnitude(static_cast<std::size_t>(tensor.columns));
  for (std::int64_t i = 0; i < tensor.rows; ++i) {
    for (std::int64_t j = 0; j < tensor.columns; ++j) {
      magnitude[static_cast<std::size_t>(j)] +=
          std::abs(static_cast<double>(tensor.weight[i * tensor.columns + j]));
    }
  }
  std::vector<double> scores(static_cast<std::size_t>(tensor.columns / size));
  for (std::int64_t j = 0; j < static_cast<std::int64_t>(scores.size()) * size; ++j) {
    scores[static_cast<std::size_t>(j / size)] +=
        tensor.input_rms[j] * (magnitude[static_cast<std::size_t>(j)] / static_cast<double>(tensor.rows));
  }
  return scores;
}

std::vector<ColumnGroup> most_salient_groups(sdk::QuantizeTensors tensors, std::int64_t size,
                                             std::int64_t bits, std::int64_t count) {
  struct Candidate {
    double score;
    ColumnGroup group;
  };
  std::vector<Candidate> candidates;
  if (count == 0) return {};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].bits >= bits || !tensors[i].input_rms) continue;
    const std::vector<double> scores = group_scores(tensors[i], size);
    for (std::size_t g = 0; g < scores.size(); ++g) {
      candidates.push_back({scores[g], {static_cast<std::int64_t>(i), static_cast<std::int64_t>(g) * size}});
    }
  }
  std::ranges::stable_sort(candidates, std::ranges::greater{}, &Candidate::score);
  std::vector<ColumnGroup> groups;
  for (const Candidate& candidate : candidates | std::views::take(count)) groups.push_back(candidate.group);
  return groups;
}

double sum_of_largest(std::vector<double> values, std::int64_t count) {
  std::ranges::sort(values, std::greater{});
  return std::accumulate(values.begin(), values.begin() + std::min(count, std::ssize(values)), 0.0);
}

double most_protection_bytes(sdk::QuantizeTensors tensors, std::int64_t size, std::int64_t bits,
                             std::int64_t count) {
  std::vector<double> by_group;
  for (const mlg_quantize_tensor& tensor : tensors) {
    if (tensor.bits >= bits) continue;
    // A finer code costs log2 of how much finer it is, a row of them two bytes for its scale.
    const auto rows = static_cast<double>(tensor.rows);
    const double finer = std::log2(((1 << (bits - 1)) - 1.0) / ((1 << (tensor.bits - 1)) - 1.0));
    const double bytes = rows * (static_cast<double>(size) * finer / 8 + 2);
    const std::int64_t groups = std::min(count, tensor.columns / size);
    by_group.insert(by_group.end(), static_cast<std::size_t>(groups), bytes);
  }
  return sum_of_largest(std::move(by_group), count);
}

}  // namespace mulligan
