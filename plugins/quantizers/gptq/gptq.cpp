// GPTQ (Frantar et al., "GPTQ: accurate post-training quantization for generative pre-trained transformers",
// ICLR 2023) with the record's options (docs/record_run.md#gptq).
//
// Columns are rounded one after the other; what rounding one loses is made up by the columns still to come.
// The paper subtracts e U[j, k] from column k, with U the upper Cholesky factor of the inverse Hessian. The
// same numbers come without any inverse (Chee et al., "QuIP", NeurIPS 2023, theorem 6): let L L^T be the
// Hessian with its columns in reverse order of rounding; then column k is rounded at
//   w_k + sum over columns j rounded before k of d_j L[j, k] / L[k, k],   d_j = w_j - q_j scale,
// which costs a third of the arithmetic and loses no digits to the inversion. All arithmetic is f64.
#include <algorithm>
#include <mulligan/quantizer.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "plugins/quantizers/common/row_scale.h"
#include "plugins/quantizers/gptq/linear_algebra.h"
#include "plugins/quantizers/gptq/low_rank.h"
#include "plugins/quantizers/gptq/saliency.h"

namespace mulligan {
namespace {

constexpr std::int64_t lane_count = 16;  // rows that are rounded side by side, in vector lanes

struct GptqConfig {
  double damping = 0.01;
  std::int64_t block = 128;
  std::string order = "descending";
  std::string plain_range = "deviations";
  std::int64_t protected_groups = 0, protected_size = 64, protected_bits = 8;
  std::int64_t corrected_tensors = 0, correction_rank = 4, correction_group = 64;
};

// The Hessian made fit for factoring: H[order][order] damped, replaced by its Cholesky factor.
struct Factor {
  std::vector<std::int64_t>
      order;                  // original column of each position; rounded from the last position to the first
  std::vector<double> lower;  // [n, n]
  std::vector<bool> dead;     // by original column: the layer never saw a value other than 0 there
  double damping = 0;         // what was added to the diagonal
  std::vector<bool> is_protected;  // by original column
};

Factor factor_of(const sdk::QuantizeRequest& request, const GptqConfig& config) {
  const std::int64_t n = request.columns;
  const auto h = [&](std::int64_t i, std::int64_t j) {
    return static_cast<double>(request.hessian[i * n + j]);
  };
  Factor factor;
  std::vector<double> diagonal(static_cast<std::size_t>(n));
  factor.dead.resize(diagonal.size());
  for (std::int64_t i = 0; i < n; ++i) {
    factor.dead[static_cast<std::size_t>(i)] = h(i, i) == 0.0;
    diagonal[static_cast<std::size_t>(i)] = h(i, i) == 0.0 ? 1.0 : h(i, i);
  }
  factor.damping =
      config.damping * std::accumulate(diagonal.begin(), diagonal.end(), 0.0) / static_cast<double>(n);
  for (double& value : diagonal) value += factor.damping;

  factor.order.resize(diagonal.size());
  std::iota(factor.order.begin(), factor.order.end(), 0);
  if (config.order == "descending") {
    std::ranges::stable_sort(factor.order, [&](std::int64_t a, std::int64_t b) {
      return diagonal[static_cast<std::size_t>(a)] > diagonal[static_cast<std::size_t>(b)];
    });
  }
  std::ranges::reverse(factor.order);

  factor.lower.resize(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t row = factor.order[static_cast<std::size_t>(i)];
    double* out = factor.lower.data() + i * n;
    for (std::int64_t j = 0; j < i; ++j) out[j] = h(row, factor.order[static_cast<std::size_t>(j)]);
    out[i] = diagonal[static_cast<std::size_t>(row)];
  }
  try {
    cholesky(factor.lower.data(), n,
             [&](std::int64_t count, const auto& body) { request.parallel(count, 8, body); });
  } catch (const std::runtime_error& error) {
    throw sdk::Error("matrix '" + std::string(request.name) + "': " + error.what());
  }
  factor.is_protected.resize(static_cast<std::size_t>(n));
  for (const std::int64_t start : request.protected_groups()) {
    std::fill_n(factor.is_protected.begin() + start, request.protected_size, true);
  }
  return factor;
}

// Rounds lane_count rows at once; position by position from the last to the first, in blocks so that the
// parts of L in use stay in the cache.
class RowGroup {
 public:
  RowGroup(const sdk::QuantizeRequest& request, const Factor& factor, std::int64_t block)
      : request_(request),
        factor_(factor),
        n_(request.columns),
        block_(std::min(block, request.columns)),
        difference_(static_cast<std::size_t>(n_ * lane_count)),
        target_(static_cast<std::size_t>(block_ * lane_count)) {}

  // Rows [first, first + count), count <= lane_count. Returns sum of d H d^T over them.
  double run(std::int64_t first, std::int64_t count, sdk::QuantizeResult& result) {
    RowScales scales;
    for (std::int64_t r = 0; r < count; ++r) {
      const float* row = request_.weight + (first + r) * n_;
      scales.usual[r] = row_scale(row, n_, request_.clip_sigmas, request_.qmax());
      result.scales[first + r] = static_cast<float>(scales.usual[r]);
      if (request_.protected_count == 0) continue;
      scales.fine[r] = row_scale(row, n_, request_.clip_sigmas, protected_qmax());
      result.protected_scales[first + r] = static_cast<float>(scales.fine[r]);
    }
    double error = 0;
    for (std::int64_t end = n_; end > 0; end -= block_) {
      const std::int64_t begin = std::max<std::int64_t>(0, end - block_);
      carry_over(begin, end);
      for (std::int64_t k = end - 1; k >= begin; --k)
        error += round_column(k, begin, first, count, scales, result);
      if (begin == 0) break;
    }
    return error;
  }

 private:
  struct RowScales {
    double usual[lane_count] = {}, fine[lane_count] = {};  // fine: of protected columns
  };

  int protected_qmax() const { return (1 << (request_.protected_bits - 1)) - 1; }
  const double* l(std::int64_t j) const { return factor_.lower.data() + j * n_; }

  // target_[k - begin] = sum over j >= end of d_j L[j, k], for k in [begin, end).
  void carry_over(std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t width = 4;
    for (std::int64_t k = begin; k < end; k += width) {
      const std::int64_t columns = std::min(width, end - k);
      double sums[width][lane_count] = {};
      for (std::int64_t j = end; j < n_; ++j) {
        const double* d = difference_.data() + j * lane_count;
        const double* factor = l(j) + k;
        for (std::int64_t c = 0; c < columns; ++c) {
          for (std::int64_t r = 0; r < lane_count; ++r) sums[c][r] += d[r] * factor[c];
        }
      }
      for (std::int64_t c = 0; c < columns; ++c)
        std::copy_n(sums[c], lane_count, target_.data() + (k - begin + c) * lane_count);
    }
  }

  double round_column(std::int64_t k, std::int64_t begin, std::int64_t first, std::int64_t count,
                      const RowScales& scales, sdk::QuantizeResult& result) {
    const std::int64_t column = factor_.order[static_cast<std::size_t>(k)];
    const bool dead = factor_.dead[static_cast<std::size_t>(column)];
    const bool fine = factor_.is_protected[static_cast<std::size_t>(column)];
    const double* scale = fine ? scales.fine : scales.usual;
    const int qmax = fine ? protected_qmax() : request_.qmax();
    const double pivot = l(k)[k];
    double* d = difference_.data() + k * lane_count;
    const double* carried = target_.data() + (k - begin) * lane_count;
    double error = 0;
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t at = (first + r) * n_ + column;
      const double weight = dead ? 0.0 : request_.weight[at];
      const double wanted = weight + carried[r] / pivot;
      const double code = code_of(wanted, scale[r], qmax);
      result.codes[at] = static_cast<std::int8_t>(code);
      d[r] = weight - code * scale[r];
      // d H d^T of the damped Hessian is the squared norm of d L; without the damping it is the error
      // that is reported.
      const double rounding = (wanted - code * scale[r]) * pivot;
      error += rounding * rounding - factor_.damping * d[r] * d[r];
      if (dead) error -= d[r] * d[r];
    }
    for (std::int64_t j = begin; j < k; ++j) {
      double* later = target_.data() + (j - begin) * lane_count;
      const double factor = l(k)[j];
      for (std::int64_t r = 0; r < lane_count; ++r) later[r] += d[r] * factor;
    }
    return error;
  }

  const sdk::QuantizeRequest& request_;
  const Factor& factor_;
  std::int64_t n_, block_;
  std::vector<double> difference_;  // [n, lane_count]: w - q scale of the columns rounded so far
  std::vector<double> target_;      // [block, lane_count]
};

class Gptq : public sdk::ModelQuantizer {
 public:
  static constexpr const char* summary = "GPTQ: later columns compensate the rounding errors of a column";
  static constexpr bool needs_hessian = true;
  static inline const sdk::Schema<GptqConfig> schema{
      sdk::key("damping", &GptqConfig::damping, "share of the Hessian's mean diagonal added to its diagonal")
          .range(0, 1),
      sdk::key("block", &GptqConfig::block, "columns rounded as a block; changes the speed, not the result")
          .range(1, 65536),
      sdk::key("order", &GptqConfig::order, "columns by descending Hessian diagonal, or as they stand")
          .choices("descending|none"),
      sdk::key("plain_range", &GptqConfig::plain_range,
               "range of a row where no linear layer reads the matrix, as of "
               "gates: clip_sigmas standard deviations, or the row's largest magnitude")
          .choices("deviations|largest"),
      sdk::key("protected_groups", &GptqConfig::protected_groups,
               "groups of columns with finer codes, those that matter most in the whole model (AWQ-lite)")
          .range(0, 1 << 20),
      sdk::key("protected_size", &GptqConfig::protected_size, "columns of a protected group")
          .range(1, 1 << 20),
      sdk::key("protected_bits", &GptqConfig::protected_bits,
               "bits of the codes of protected columns; tensors with as many bits are left alone")
          .range(3, 8),
      sdk::key(
          "corrected_tensors", &GptqConfig::corrected_tensors,
          "tensors with a correction of low rank, those with the largest error in the whole model (LQER)")
          .range(0, 1 << 20),
      sdk::key("correction_rank", &GptqConfig::correction_rank, "rank of a correction")
          .range(1, largest_rank),
      sdk::key("correction_group", &GptqConfig::correction_group,
               "codes of a correction's right factor that share a scale")
          .range(1, 1 << 20)};

  explicit Gptq(const GptqConfig& config) : config_(config) {}

  void quantize(const sdk::QuantizeRequest& request, sdk::QuantizeResult& result) override {
    // Without second moments no column can make up for another.
    if (!request.hessian)
      return round_to_nearest(request, result, [&](const float* row) { return plain_scale(row, request); });
    const Factor factor = factor_of(request, config_);
    const std::int64_t groups = (request.rows + lane_count - 1) / lane_count;
    std::vector<double> group_error(static_cast<std::size_t>(groups));
    request.parallel(groups, 1, [&](std::int64_t begin, std::int64_t end) {
      RowGroup rows(request, factor, config_.block);
      for (std::int64_t group = begin; group < end; ++group) {
        const std::int64_t first = group * lane_count;
        group_error[static_cast<std::size_t>(group)] =
            rows.run(first, std::min(lane_count, request.rows - first), result);
      }
    });
    result.squared_error = std::accumulate(group_error.begin(), group_error.end(), 0.0);
  }

  void protect(sdk::QuantizeTensors tensors, mlg_quantize_choices& choices) override {
    choices.protected_size = config_.protected_size;
    choices.protected_bits = static_cast<std::int32_t>(config_.protected_bits);
    for (const ColumnGroup& group : most_salient_groups(tensors, config_.protected_size,
                                                        config_.protected_bits, config_.protected_groups)) {
      choices.protect(choices.context, group.tensor, group.start);
    }
  }

  void correct(sdk::QuantizeTensors tensors, mlg_quantize_choices& choices) override {
    // Matrices that no linear layer reads, such as gates, are not candidates.
    for (const std::int64_t index : largest_errors(tensors, config_.corrected_tensors)) {
      const mlg_quantize_tensor& tensor = tensors[static_cast<std::size_t>(index)];
      const std::vector<double> error = error_of(tensor);
      const LowRankCodes codes = with_best_signs(
          error, low_rank_factors(error, tensor.rows, tensor.columns, config_.correction_rank), tensor.rows,
          tensor.columns, config_.correction_group);
      const mlg_low_rank correction{
          codes.rank,        codes.left.data(),        codes.right.data(),       codes.left_group,
          codes.right_group, codes.left_scales.data(), codes.right_scales.data()};
      choices.correct(choices.context, index, &correction);
    }
  }

  double extra_bytes(sdk::QuantizeTensors tensors) override {
    return most_protection_bytes(tensors, config_.protected_size, config_.protected_bits,
                                 config_.protected_groups) +
           most_correction_bytes(tensors, config_.corrected_tensors, config_.correction_rank,
                                 config_.correction_group);
  }

 private:
  // As plain_range says; "largest": fp16(max(largest magnitude, 1e-10) / qmax).
  float plain_scale(const float* row, const sdk::QuantizeRequest& request) const {
    if (config_.plain_range == "deviations")
      return row_scale(row, request.columns, request.clip_sigmas, request.qmax());
    double largest = 1e-10;
    for (std::int64_t j = 0; j < request.columns; ++j)
      largest = std::max(largest, std::abs(static_cast<double>(row[j])));
    return sdk::round_to_half(largest / request.qmax());
  }

  GptqConfig config_;
};

}  // namespace
}  // namespace mulligan

MULLIGAN_EXPORT_QUANTIZER(mulligan::Gptq, gptq);
