#include "framework/artifact/size_prediction.h"

#include <cmath>

#include "framework/artifact/quantize.h"

namespace mulligan {
namespace {

// What a coder needs of the entropy of normal codes: Brotli's prefix codes, and the adaptive coder's
// learning.
double coder_overhead(Compression compression) {
  return compression == Compression::adaptive ? 1.001 : 1.015;
}

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

}  // namespace

double normal_code_entropy(double step, int qmax) {
  double bits = 0;
  for (int q = -qmax; q <= qmax; ++q) {
    const double below = q == -qmax ? 0.0 : normal_cdf((q - 0.5) * step);
    const double above = q == qmax ? 1.0 : normal_cdf((q + 0.5) * step);
    const double p = above - below;
    if (p > 0) bits -= p * std::log2(p);
  }
  return bits;
}

std::vector<double> predict_sizes(std::span<const ArtifactPart> parts,
                                  std::span<const QuantizeTensorRow> rows, Compression compression) {
  const double overhead = coder_overhead(compression);
  const std::vector<const QuantizeTensorRow*> table = resolve_quantize_table(parts, rows);
  std::vector<double> sizes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorType& type = parts[i].type;
    const auto elements = static_cast<double>(type.elements());
    const auto columns =
        static_cast<double>(type.rank == 0 ? 1 : type.dims[static_cast<std::size_t>(type.rank - 1)]);
    const double scales = 2 * elements / columns;
    switch (table[i]->format) {
      case TensorFormat::integer: {
        const int qmax = (1 << (table[i]->bits - 1)) - 1;
        const double bits = normal_code_entropy(table[i]->clip_sigmas / qmax, qmax);
        sizes.push_back(elements * bits / 8 * overhead + scales);
        break;
      }
      case TensorFormat::int8_row: {
        // The largest of n normal magnitudes is near sqrt(2 ln n).
        const double largest = std::max(1.0, std::sqrt(2 * std::log(columns)));
        sizes.push_back(elements * normal_code_entropy(largest / 127, 127) / 8 * overhead + scales);
        break;
      }
      case TensorFormat::fp16:
      case TensorFormat::bf16:
        sizes.push_back(2 * elements);
        break;
      case TensorFormat::fp32:
        sizes.push_back(4 * elements);
        break;
    }
  }
  return sizes;
}

}  // namespace mulligan
