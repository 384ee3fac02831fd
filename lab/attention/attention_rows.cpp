#include "lab/attention/attention_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "framework/core/philox.h"

namespace mulligan::doctor {
namespace {

// Binary digits of a dtype's significand after the leading one.
int fraction_digits(DType dtype) {
  return dtype == MLG_BF16 ? 7 : dtype == MLG_F16 ? 10 : 23;
}

double spacing(double size, DType dtype) {
  return std::ldexp(1.0, std::ilogb(size) - fraction_digits(dtype));
}

// Exact results of one row.
struct Row {
  double largest = 0;           // logit
  std::int64_t repeats = 0;     // keys whose logit is the largest
  std::vector<double> o, size;  // [h]: sum p v, sum p |v|
};

Row exact_row(const AttentionCallValues& c, std::int64_t begin, std::int64_t token, std::int64_t head) {
  const std::int64_t kv_head = head / (c.heads / c.kv_heads);
  const auto at = [&](std::int64_t t) {
    return static_cast<std::size_t>((t * c.kv_heads + kv_head) * c.width);
  };
  const double* query = c.q.data() + (token * c.heads + head) * c.width;
  std::vector<double> logits;
  for (std::int64_t t = begin; t <= token; ++t) {
    double dot = 0;
    for (std::int64_t i = 0; i < c.width; ++i) dot += query[i] * c.k[at(t) + static_cast<std::size_t>(i)];
    logits.push_back(c.softmax_scale * dot);
  }
  const auto width = static_cast<std::size_t>(c.width);
  Row row{*std::ranges::max_element(logits), 0, std::vector<double>(width), std::vector<double>(width)};
  double sum = 0;
  for (const double logit : logits) {
    row.repeats += logit >= row.largest - c.tolerance ? 1 : 0;
    sum += std::exp(logit - row.largest);
  }
  for (std::int64_t t = begin; t <= token; ++t) {
    const double weight = std::exp(logits[static_cast<std::size_t>(t - begin)] - row.largest) / sum;
    for (std::size_t i = 0; i < width; ++i) {
      row.o[i] += weight * c.v[at(t) + i];
      row.size[i] += weight * std::abs(c.v[at(t) + i]);
    }
  }
  return row;
}

std::vector<std::int64_t> segment_starts(const std::vector<double>& boundaries, std::int64_t tokens) {
  std::vector<std::int64_t> starts(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i + 1 < boundaries.size(); ++i) {
    for (auto t = static_cast<std::size_t>(boundaries[i]); t < static_cast<std::size_t>(boundaries[i + 1]);
         ++t)
      starts[t] = static_cast<std::int64_t>(boundaries[i]);
  }
  return starts;
}

}  // namespace

AttentionRowsSeen look_at_rows(const AttentionCallValues& c, std::int64_t most_rows) {
  const std::int64_t all = static_cast<std::int64_t>(c.q.size()) / c.width;
  const std::vector<std::int64_t> starts = segment_starts(c.boundaries, all / c.heads);
  const auto start_of = [&](std::int64_t row) { return starts[static_cast<std::size_t>(row / c.heads)]; };
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < all; ++row) {
    if (row / c.heads - start_of(row) >= c.least_keys) rows.push_back(row);
  }
  const auto there = static_cast<std::int64_t>(rows.size()), looked_at = std::min(there, most_rows);
  AttentionRowsSeen seen{{}, looked_at};
  AttentionLayerRecord& record = seen.record;
  record.largest_logit = -std::numeric_limits<double>::infinity();
  double repeated = 0, errors = 0, squares = 0, delta_errors = 0, deltas = 0;
  for (std::int64_t i = 0; i < looked_at; ++i) {
    const std::int64_t index = rows[static_cast<std::size_t>(i * there / looked_at)];
    const Row row = exact_row(c, start_of(index), index / c.heads, index % c.heads);
    // A logit that is not a number is to be seen.
    record.largest_logit =
        row.largest > record.largest_logit || std::isnan(row.largest) ? row.largest : record.largest_logit;
    repeated += row.repeats > 1 ? 1 : 0;
    double error = 0, delta_error = 0, delta = 0;
    for (std::int64_t j = 0; j < c.width; ++j) {
      const auto element = static_cast<std::size_t>(index * c.width + j), at = static_cast<std::size_t>(j);
      const double difference = c.o[element] - row.o[at];
      if (row.size[at] > 0) error += difference / spacing(row.size[at], c.dtype);
      if (c.gradient.empty()) continue;
      delta_error += c.gradient[element] * difference;
      delta += c.gradient[element] * row.o[at];
    }
    error /= static_cast<double>(c.width);
    errors += error;
    squares += error * error;
    delta_errors += delta_error * delta_error;
    deltas += delta * delta;
  }
  const auto count = static_cast<double>(looked_at);
  record.repeated_rows = repeated / count;
  record.error_ulp = errors / count;
  record.error_standard_error_ulp =
      std::sqrt(std::max(0.0, squares / count - record.error_ulp * record.error_ulp) / count);
  if (!c.gradient.empty()) {
    record.delta_error = std::sqrt(delta_errors);
    record.delta_norm = std::sqrt(deltas);
  }
  return seen;
}

double spectral_norm(const float* matrix, std::int64_t rows, std::int64_t columns) {
  const PhiloxStream random(0, "spectral_norm");
  const auto width = static_cast<std::size_t>(columns);
  std::vector<double> x(width);
  for (std::size_t i = 0; i < width; ++i) x[i] = random.normal(i);
  double norm = 0;
  for (int round = 0; round < 100; ++round) {
    const double length = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
    if (length > 0) std::ranges::for_each(x, [length](double& value) { value /= length; });
    std::vector<double> next(width);  // the square of the matrix times x
    double squares = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* row = matrix + r * columns;
      const double dot = std::inner_product(x.begin(), x.end(), row, 0.0);
      squares += dot * dot;
      for (std::size_t c = 0; c < width; ++c) next[c] += static_cast<double>(row[c]) * dot;
    }
    const double before = norm;
    norm = std::sqrt(squares);
    if (!(std::abs(norm - before) > 1e-5 * norm)) break;
    x = std::move(next);
  }
  return norm;
}

}  // namespace mulligan::doctor
