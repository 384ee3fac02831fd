// LQER restores a part of the quantisation loss by two thin factors, which are multiplied (Zhang et al., "LQER:
// low-rank quantization error reconstruction for LLMs", ICML 2024). The factors are as coarse as in the public records.
#pragma once

#include <cstdint>
#include <mulligan/quantizer.hpp>
#include <vector>

namespace mulligan {

inline constexpr std::int64_t largest_rank = 12;

// A matrix's largest singular triplets: left [rows, rank] = U S, right [rank, columns] = V^T, descending.
struct LowRankFactors {
  std::int64_t rank = 0;
  std::vector<double> left, right;
  std::vector<double> singular_values;  // all, min(rows, columns)
};

// The factors as codes with fp16 scales (mlg_low_rank).
struct LowRankCodes {
  std::int64_t rank = 0, left_group = 0, right_group = 0;
  std::vector<std::int8_t> left, right;
  std::vector<float> left_scales, right_scales;
};

// weight - read_back, [rows, columns].
std::vector<double> error_of(const mlg_quantize_tensor& tensor);

// Indices of the `count` tensors with the largest Frobenius norm of the error, from the largest; of equal
// ones the first. Tensors without error, or whose inputs are not known, are left out.
std::vector<std::int64_t> largest_errors(sdk::QuantizeTensors tensors, std::int64_t count);

// The singular value decomposition of error [rows, columns], cut to `rank` (at most min(rows, columns)).
LowRankFactors low_rank_factors(const std::vector<double>& error, std::int64_t rows, std::int64_t columns,
                                std::int64_t rank);

// Codes of the factors as they are. Where rank x columns is a multiple of `group`: the left factor in [-2, 1]
// with one scale fp16(largest / 1.5), each `group` numbers of the right one in [-8, 7] with fp16(largest /
// 7.5). Else each row of both in [-7, 7] with fp16(largest / 7). Ties to even.
LowRankCodes quantize_factors(const LowRankFactors& factors, std::int64_t rows, std::int64_t columns,
                              std::int64_t group);

// Quantises the factors of `error`. Codes of [-2, 1] are not symmetric, so the sign of each singular pair matters: of
// all choices the one with the smallest remaining error.
LowRankCodes with_best_signs(const std::vector<double>& error, LowRankFactors factors, std::int64_t rows,
                             std::int64_t columns, std::int64_t group);

// Bytes, at most, of corrections of `count` tensors: as if they were the largest; codes at 2 and 4 bits.
double most_correction_bytes(sdk::QuantizeTensors tensors, std::int64_t count, std::int64_t rank,
                             std::int64_t group);

}  // namespace mulligan
