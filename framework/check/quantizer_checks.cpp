// Checks of quantiser plugins.
#include <mulligan/half.hpp>

#include <algorithm>
#include <cmath>

#include "framework/check/kind_checks.h"
#include "framework/check/poisoned_run.h"
#include "framework/plugin/quantizer.h"

namespace mulligan {
namespace {

constexpr double clip_sigmas = 6;
// What codes hold before; scales then hold NaN or 12.
constexpr std::uint8_t poison_high = 0x7F, poison_low = 0x81;

struct Matrix {
  std::int64_t rows, columns;
  std::vector<float> weight, hessian;
};

// A matrix whose rows differ in size, and second moments of correlated inputs.
Matrix matrix(std::int64_t rows, std::int64_t columns) {
  Matrix m{rows, columns, sample(static_cast<std::size_t>(rows * columns), 1, 0.1f), {}};
  for (std::int64_t i = 0; i < rows * columns; ++i)
    m.weight[static_cast<std::size_t>(i)] *= static_cast<float>(1 + i / columns);
  const std::int64_t inputs = 3 * columns;
  const std::vector<float> x = sample(static_cast<std::size_t>(inputs * columns), 2);
  m.hessian.assign(static_cast<std::size_t>(columns * columns), 0);
  const auto at = [&](std::int64_t n, std::int64_t c) {
    return static_cast<double>(x[static_cast<std::size_t>(n * columns + c)]) +
           0.5 * static_cast<double>(x[static_cast<std::size_t>(n * columns)]);
  };
  for (std::int64_t a = 0; a < columns; ++a) {
    for (std::int64_t b = 0; b < columns; ++b) {
      double sum = 0;
      for (std::int64_t n = 0; n < inputs; ++n) sum += at(n, a) * at(n, b);
      m.hessian[static_cast<std::size_t>(a * columns + b)] =
          static_cast<float>(sum / static_cast<double>(inputs));
    }
  }
  return m;
}

// Single elements, from the last to the first: as unlike one piece as the contract allows.
void backwards(std::int64_t count, std::int64_t, void (*body)(void*, std::int64_t, std::int64_t),
               void* context) {
  for (std::int64_t i = count; i-- > 0;) body(context, i, i + 1);
}

struct Result {
  std::vector<std::int8_t> codes;
  std::vector<float> scales, fine_scales = {};
  double squared_error = 0;
};

// Groups of columns that have codes of `bits` bits of their own.
struct FineColumns {
  std::vector<std::int64_t> starts = {};
  std::int64_t size = 0;
  int bits = 0;
  bool has(std::int64_t column) const {
    return std::ranges::any_of(starts,
                               [&](std::int64_t start) { return column >= start && column < start + size; });
  }
};

Result quantize(const Quantizer& quantizer, const Matrix& m, int bits, bool with_hessian, std::uint8_t poison,
                decltype(&in_one_piece) parallel, const FineColumns& fine = {}) {
  Result result;
  result.codes.assign(m.weight.size(), static_cast<std::int8_t>(poison));
  result.scales.assign(static_cast<std::size_t>(m.rows), poison == poison_high ? NAN : 12.0f);
  result.fine_scales = result.scales;
  const std::vector<float> rms(static_cast<std::size_t>(m.columns), 1.0f);
  const bool chooses = !fine.starts.empty();
  const mlg_quantize_request request{"check.weight",
                                     m.weight.data(),
                                     with_hessian ? m.hessian.data() : nullptr,
                                     m.rows,
                                     m.columns,
                                     bits,
                                     clip_sigmas,
                                     parallel,
                                     chooses ? rms.data() : nullptr,
                                     chooses ? fine.starts.data() : nullptr,
                                     std::ssize(fine.starts),
                                     fine.size,
                                     fine.bits};
  mlg_quantize_result out{result.codes.data(), result.scales.data(), NAN,
                          chooses ? result.fine_scales.data() : nullptr};
  quantizer.quantize(request, out);
  result.squared_error = out.squared_error;
  if (!chooses) result.fine_scales.clear();
  return result;
}

// Whether codes lie within their bits and scales are of fp16.
std::string range_problem(const Matrix& m, const Result& result, int bits, const FineColumns& fine = {}) {
  for (std::int64_t i = 0; i < m.rows * m.columns; ++i) {
    const int most = (1 << ((fine.has(i % m.columns) ? fine.bits : bits) - 1)) - 1;
    const int code = result.codes[static_cast<std::size_t>(i)];
    if (code < -most || code > most)
      return fmt::format("the code {} in column {} is beyond {}", code, i % m.columns, most);
  }
  for (const std::vector<float>* scales : {&result.scales, &result.fine_scales}) {
    for (const float scale : *scales) {
      if (!std::isfinite(scale) || sdk::half_value(sdk::half_bits(scale)) != scale)
        return fmt::format("the scale {} is not an fp16 number", scale);
    }
  }
  return {};
}

// sum over rows of d H d^T with d = weight - codes * scale; H the identity without a hessian.
double error_of(const Matrix& m, const Result& result, bool with_hessian) {
  double total = 0;
  for (std::int64_t row = 0; row < m.rows; ++row) {
    std::vector<double> d(static_cast<std::size_t>(m.columns));
    for (std::int64_t c = 0; c < m.columns; ++c) {
      const auto i = static_cast<std::size_t>(row * m.columns + c);
      d[static_cast<std::size_t>(c)] = static_cast<double>(m.weight[i]) -
                                       static_cast<double>(static_cast<float>(result.codes[i]) *
                                                           result.scales[static_cast<std::size_t>(row)]);
    }
    for (std::int64_t a = 0; a < m.columns; ++a) {
      for (std::int64_t b = 0; b < m.columns; ++b) {
        const double h = with_hessian
                             ? static_cast<double>(m.hessian[static_cast<std::size_t>(a * m.columns + b)])
                             : (a == b ? 1.0 : 0.0);
        total += d[static_cast<std::size_t>(a)] * h * d[static_cast<std::size_t>(b)];
      }
    }
  }
  return total;
}

bool same(const Result& a, const Result& b) {
  return a.codes == b.codes && a.scales == b.scales && a.squared_error == b.squared_error;
}

// Two groups of columns with codes of 7 bits, the rest of 4: codes within their widths, scales of fp16, and
// an error that is nearer to the weights than without the groups.
std::string protected_columns_problem(const Quantizer& quantizer) {
  const Matrix m = matrix(17, 33);
  const FineColumns fine{{3, 20}, 5, 7};
  constexpr int bits = 4;
  const Result result = quantize(quantizer, m, bits, true, poison_high, in_one_piece, fine);
  if (std::string problem = range_problem(m, result, bits, fine); !problem.empty()) return problem;
  // What the fine columns lose by themselves: at most half a step each, and their step is a
  // ninth of the others'.
  double loss = 0, weights = 0;
  for (std::int64_t i = 0; i < m.rows * m.columns; ++i) {
    if (!fine.has(i % m.columns)) continue;
    const auto at = static_cast<std::size_t>(i);
    const double value =
        result.codes[at] * static_cast<double>(result.fine_scales[static_cast<std::size_t>(i / m.columns)]);
    loss += std::pow(static_cast<double>(m.weight[at]) - value, 2);
    weights += std::pow(static_cast<double>(m.weight[at]), 2);
  }
  if (loss <= 0.25 * weights) return {};
  return fmt::format("protected columns lose {:.4g} of {:.4g}", loss, weights);
}

// Calls `body` for matrices of odd extents, every number of bits, with and without a hessian.
std::string for_all(const Quantizer& quantizer,
                    const std::function<std::string(const Matrix&, int bits, bool with_hessian)>& body) {
  for (const auto& [rows, columns] : {std::pair{5, 33}, std::pair{1, 1}, std::pair{17, 7}}) {
    const Matrix m = matrix(rows, columns);
    for (int bits = 2; bits <= 8; ++bits) {
      for (const bool with_hessian : {false, true}) {
        if (with_hessian && !quantizer.needs_hessian()) continue;
        const std::string problem = body(m, bits, with_hessian);
        if (!problem.empty())
          return fmt::format("{} ([{}, {}], {} bits{})", problem, rows, columns, bits,
                             with_hessian ? ", with a hessian" : "");
      }
    }
  }
  return {};
}

}  // namespace

void check_quantizer(const PluginHandle& plugin, const PluginConfig& config, CheckList& list) {
  const Quantizer quantizer(plugin, config);
  const auto add = [&](const char* what, const std::function<std::string(const Matrix&, int, bool)>& body) {
    list.add(what, [&] { return for_all(quantizer, body); });
  };
  add("codes and scales are written, whatever memory held before",
      [&](const Matrix& m, int bits, bool hessian) {
        const Result a = quantize(quantizer, m, bits, hessian, poison_high, in_one_piece);
        return same(a, quantize(quantizer, m, bits, hessian, poison_low, in_one_piece))
                   ? std::string()
                   : std::string("codes or scales depend on what memory held before");
      });
  add("codes lie within their bits, scales are fp16", [&](const Matrix& m, int bits, bool hessian) {
    return range_problem(m, quantize(quantizer, m, bits, hessian, poison_high, in_one_piece), bits);
  });
  add("squared_error is that of the codes", [&](const Matrix& m, int bits, bool hessian) -> std::string {
    const Result a = quantize(quantizer, m, bits, hessian, poison_high, in_one_piece);
    const double error = error_of(m, a, hessian);
    // Errors are summed in f32 by some; cancellation in d H d^T is bounded by the error of plain columns.
    const double tolerance =
        1e-3 * error + 1e-6 * error_of(m, {std::vector<std::int8_t>(a.codes.size()), a.scales}, hessian);
    if (std::abs(a.squared_error - error) <= tolerance) return {};
    return fmt::format("it says {:.6g}, but its codes give {:.6g}", a.squared_error, error);
  });
  add("is nearer to the weights than zeros are", [&](const Matrix& m, int bits, bool hessian) -> std::string {
    const Result a = quantize(quantizer, m, bits, hessian, poison_high, in_one_piece);
    const double error = error_of(m, a, hessian);
    const double zeros = error_of(m, {std::vector<std::int8_t>(a.codes.size()), a.scales}, hessian);
    // With two or three bits and a wide range, most codes are zero.
    const double share = bits >= 6 ? 0.05 : 1.0 + 1e-6;
    if (error <= share * zeros) return {};
    return fmt::format("the squared error is {:.4g}, that of a matrix of zeros {:.4g}", error, zeros);
  });
  if (quantizer.chooses())
    list.add("protected columns have their own bits and scales",
             [&] { return protected_columns_problem(quantizer); });
  add("the same bits however the work is cut", [&](const Matrix& m, int bits, bool hessian) {
    return same(quantize(quantizer, m, bits, hessian, poison_high, in_one_piece),
                quantize(quantizer, m, bits, hessian, poison_high, backwards))
               ? std::string()
               : std::string("one piece and many pieces give different results");
  });
}

}  // namespace mulligan
