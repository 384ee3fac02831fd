#include "plugins/quantizers/gptq/low_rank.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <mulligan/half_of_double.hpp>
#include <ranges>
#include <utility>

#include "plugins/quantizers/gptq/linear_algebra.h"
#include "plugins/quantizers/gptq/saliency.h"

namespace mulligan {
namespace {

// out = A A^T for A [n, m].
std::vector<double> gram(const std::vector<double>& a, std::int64_t n, std::int64_t m) {
  std::vector<double> out(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      const double sum = dot(a.data() + i * m, a.data() + j * m, m);
      out[static_cast<std::size_t>(i * n + j)] = out[static_cast<std::size_t>(j * n + i)] = sum;
    }
  }
  return out;
}

std::vector<double> transposed(const std::vector<double>& a, std::int64_t rows, std::int64_t columns) {
  std::vector<double> out(a.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      out[static_cast<std::size_t>(j * rows + i)] = a[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return out;
}

// Codes of values in pieces of `group` with a scale each: fp16(largest magnitude / reach),
// clamped to [low, high].
void quantize_groups(const std::vector<double>& values, std::int64_t group, double reach, double low,
                     double high, std::vector<std::int8_t>& codes, std::vector<float>& scales) {
  for (std::size_t begin = 0; begin < values.size(); begin += static_cast<std::size_t>(group)) {
    const std::size_t end = std::min(values.size(), begin + static_cast<std::size_t>(group));
    double largest = 1e-10;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
    const float scale = sdk::round_to_half(largest / reach);
    scales.push_back(scale);
    for (std::size_t i = begin; i < end; ++i) {
      const double code = scale > 0 ? std::clamp(std::nearbyint(values[i] / scale), low, high) : 0.0;
      codes.push_back(static_cast<std::int8_t>(code));
    }
  }
}

// Factors of both signs as they read back, and what decides about signs.
class SignChoice {
 public:
  SignChoice(const std::vector<double>& error, const LowRankFactors& factors, std::int64_t rows,
             std::int64_t columns, std::int64_t group)
      : rank_(factors.rank) {
    LowRankFactors turned = factors;
    for (double& value : turned.left) value = -value;
    for (double& value : turned.right) value = -value;
    std::vector<double> left, right;  // [2 rank, rows], [2 rank, columns]
    for (const LowRankFactors* sign : std::initializer_list<const LowRankFactors*>{&factors, &turned}) {
      const LowRankCodes codes = quantize_factors(*sign, rows, columns, group);
      for (std::int64_t k = 0; k < rank_; ++k) {
        for (std::int64_t i = 0; i < rows; ++i) {
          const auto at = static_cast<std::size_t>(i * rank_ + k);
          left.push_back(codes.left[at] *
                         static_cast<double>(codes.left_scales[at / group_of(codes.left_group)]));
        }
        for (std::int64_t j = 0; j < columns; ++j) {
          const auto at = static_cast<std::size_t>(k * columns + j);
          right.push_back(codes.right[at] *
                          static_cast<double>(codes.right_scales[at / group_of(codes.right_group)]));
        }
      }
    }
    left_products_ = gram(left, 2 * rank_, rows);
    right_products_ = gram(right, 2 * rank_, columns);
    for (std::int64_t k = 0; k < 2 * rank_; ++k) {
      double sum = 0;
      for (std::int64_t i = 0; i < rows; ++i) {
        const double* row = error.data() + i * columns;
        const double* factor = right.data() + k * columns;
        sum += left[static_cast<std::size_t>(k * rows + i)] * dot(row, factor, columns);
      }
      with_error_.push_back(sum);
    }
  }

  // Squared norm of what remains, less that of the error; bit k of `signs`: component k is negated.
  double remaining(unsigned signs) const {
    double total = 0;
    for (std::int64_t a = 0; a < rank_; ++a) {
      const std::int64_t i = a + (signs >> a & 1U ? rank_ : 0);
      total -= 2 * with_error_[static_cast<std::size_t>(i)];
      for (std::int64_t b = 0; b < rank_; ++b) {
        const auto at = static_cast<std::size_t>(i * 2 * rank_ + b + (signs >> b & 1U ? rank_ : 0));
        total += left_products_[at] * right_products_[at];
      }
    }
    return total;
  }

 private:
  static std::size_t group_of(std::int64_t group) { return static_cast<std::size_t>(group); }

  std::int64_t rank_;
  std::vector<double> left_products_, right_products_, with_error_;
};

}  // namespace

std::vector<double> error_of(const mlg_quantize_tensor& tensor) {
  std::vector<double> error(static_cast<std::size_t>(tensor.rows * tensor.columns));
  for (std::size_t i = 0; i < error.size(); ++i) {
    error[i] = static_cast<double>(tensor.weight[i]) - static_cast<double>(tensor.read_back[i]);
  }
  return error;
}

std::vector<std::int64_t> largest_errors(sdk::QuantizeTensors tensors, std::int64_t count) {
  struct Candidate {
    double squares;
    std::int64_t tensor;
  };
  std::vector<Candidate> candidates;
  if (count == 0) return {};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].input_rms) continue;
    const std::vector<double> error = error_of(tensors[i]);
    const double squares = dot(error.data(), error.data(), static_cast<std::int64_t>(error.size()));
    if (squares > 0) candidates.push_back({squares, static_cast<std::int64_t>(i)});
  }
  std::ranges::stable_sort(candidates, std::ranges::greater{}, &Candidate::squares);
  std::vector<std::int64_t> chosen;
  for (const Candidate& candidate : candidates | std::views::take(count)) chosen.push_back(candidate.tensor);
  return chosen;
}

LowRankFactors low_rank_factors(const std::vector<double>& error, std::int64_t rows, std::int64_t columns,
                                std::int64_t rank) {
  const std::int64_t n = std::min(rows, columns), m = std::max(rows, columns);
  // Rows of the short side: their Gram matrix has the squared singular values and that side's vectors.
  const std::vector<double> wide = rows <= columns ? error : transposed(error, rows, columns);
  const SymmetricEigen eigen = symmetric_eigen(gram(wide, n, m), n);
  LowRankFactors factors;
  factors.rank = std::min(rank, n);
  for (const double value : eigen.values) factors.singular_values.push_back(std::sqrt(value));
  std::vector<double> left, right;  // [rank, rows], [rank, columns]
  for (std::int64_t k = 0; k < factors.rank; ++k) {
    const double* vector = eigen.vectors.data() + k * n;
    std::vector<double> other(
        static_cast<std::size_t>(m));  // singular value times the vector of the long side
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < m; ++j) {
        other[static_cast<std::size_t>(j)] += vector[i] * wide[static_cast<std::size_t>(i * m + j)];
      }
    }
    const double norm = std::sqrt(dot(other.data(), other.data(), m));
    for (std::int64_t i = 0; i < rows; ++i) {
      left.push_back(rows <= columns ? vector[i] * norm : other[static_cast<std::size_t>(i)]);
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      right.push_back(rows <= columns ? (norm > 0 ? other[static_cast<std::size_t>(j)] / norm : 0)
                                      : vector[j]);
    }
  }
  factors.left = transposed(left, factors.rank, rows);
  factors.right = std::move(right);
  return factors;
}

LowRankCodes quantize_factors(const LowRankFactors& factors, std::int64_t rows, std::int64_t columns,
                              std::int64_t group) {
  LowRankCodes codes;
  codes.rank = factors.rank;
  if (factors.rank * columns % group == 0) {
    codes.left_group = rows * factors.rank;
    codes.right_group = group;
    quantize_groups(factors.left, codes.left_group, 1.5, -2, 1, codes.left, codes.left_scales);
    quantize_groups(factors.right, codes.right_group, 7.5, -8, 7, codes.right, codes.right_scales);
  } else {
    codes.left_group = factors.rank;
    codes.right_group = columns;
    quantize_groups(factors.left, codes.left_group, 7, -7, 7, codes.left, codes.left_scales);
    quantize_groups(factors.right, codes.right_group, 7, -7, 7, codes.right, codes.right_scales);
  }
  return codes;
}

LowRankCodes with_best_signs(const std::vector<double>& error, LowRankFactors factors, std::int64_t rows,
                             std::int64_t columns, std::int64_t group) {
  const SignChoice choice(error, factors, rows, columns, group);
  unsigned best = 0;
  for (unsigned signs = 1; signs < 1U << factors.rank; ++signs) {
    if (choice.remaining(signs) < choice.remaining(best)) best = signs;
  }
  for (std::int64_t k = 0; k < factors.rank; ++k) {
    if ((best >> k & 1U) == 0) continue;
    for (std::int64_t i = 0; i < rows; ++i)
      factors.left[static_cast<std::size_t>(i * factors.rank + k)] *= -1;
    for (std::int64_t j = 0; j < columns; ++j) factors.right[static_cast<std::size_t>(k * columns + j)] *= -1;
  }
  return quantize_factors(factors, rows, columns, group);
}

double most_correction_bytes(sdk::QuantizeTensors tensors, std::int64_t count, std::int64_t rank,
                             std::int64_t group) {
  std::vector<double> bytes;
  for (const mlg_quantize_tensor& tensor : tensors) {
    const auto rows = static_cast<double>(tensor.rows), columns = static_cast<double>(tensor.columns);
    const auto of_rank = static_cast<double>(rank);
    const bool coarse = rank * tensor.columns % group == 0;
    const double codes = of_rank * (rows * (coarse ? 2 : 4) + columns * 4) / 8;
    const double scales =
        coarse ? 2 + 2 * of_rank * columns / static_cast<double>(group) : 2 * (rows + of_rank);
    bytes.push_back(codes + scales);
  }
  return sum_of_largest(std::move(bytes), count);
}

}  // namespace mulligan
