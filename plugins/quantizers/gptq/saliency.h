// Which columns of a model deserve finer codes: AWQ-lite of public record runs, after Lin et al., "AWQ:
// activation-aware weight quantization", MLSys 2024, without its rescaling.
#pragma once

#include <cstdint>
#include <mulligan/quantizer.hpp>
#include <vector>

namespace mulligan {

// `size` columns from `start` of one tensor of a list.
struct ColumnGroup {
  std::int64_t tensor = 0, start = 0;
};

// Score of each group of `size` columns from 0: sum over its columns of the root mean square of the input
// times the mean magnitude of the weights. What is left over at the end is not a group.
std::vector<double> group_scores(const mlg_quantize_tensor& tensor, std::int64_t size);

// The `count` groups of the highest score among all tensors with fewer than `bits` bits whose inputs are
// known, from the highest; of equal ones the first.
std::vector<ColumnGroup> most_salient_groups(sdk::QuantizeTensors tensors, std::int64_t size,
                                             std::int64_t bits, std::int64_t count);

// Of the `count` largest values, or of all.
double sum_of_largest(std::vector<double> values, std::int64_t count);

// Bytes, at most, that the groups add: as if they lay in the tallest tensors. Codes are taken for normal.
double most_protection_bytes(sdk::QuantizeTensors tensors, std::int64_t size, std::int64_t bits,
                             std::int64_t count);

}  // namespace mulligan
