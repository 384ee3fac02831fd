// What the quantisers share: the scale of a row and rounding to nearest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mulligan/half_of_double.hpp>
#include <mulligan/quantizer.hpp>
#include <numeric>
#include <vector>

namespace mulligan {

// fp16(max(k * std(row) / qmax, 1e-10)), std with n - 1 in the denominator (docs/record_run.md#gptq). The
// smallest scales round to 0 in fp16: such a row is all but zero, and its codes are 0. A row of one column
// has no standard deviation and takes its magnitude in place of k * std.
inline float row_scale(const float* row, std::int64_t columns, double clip_sigmas, int qmax) {
  double mean = 0;
  for (std::int64_t j = 0; j < columns; ++j) mean += row[j];
  mean /= static_cast<double>(columns);
  double squares = 0;
  for (std::int64_t j = 0; j < columns; ++j) squares += (row[j] - mean) * (row[j] - mean);
  const double reach = columns > 1 ? clip_sigmas * std::sqrt(squares / static_cast<double>(columns - 1))
                                   : std::abs(static_cast<double>(row[0]));
  return sdk::round_to_half(std::max(reach / qmax, 1e-10));
}

// clamp(round(w / scale), -qmax, qmax), ties to even; 0 for a scale of 0.
inline double code_of(double weight, double scale, double qmax) {
  return scale > 0 ? std::clamp(std::nearbyint(weight / scale), -qmax, qmax) : 0.0;
}

// Rounds every weight by itself, with scale_of(row) for each row of the request.
template <typename ScaleOf>
void round_to_nearest(const sdk::QuantizeRequest& request, sdk::QuantizeResult& result, ScaleOf&& scale_of) {
  const std::int64_t columns = request.columns;
  std::vector<double> row_error(static_cast<std::size_t>(request.rows));
  request.parallel(request.rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* row = request.weight + i * columns;
      const float scale = scale_of(row);
      double error = 0;
      for (std::int64_t j = 0; j < columns; ++j) {
        const double code = code_of(row[j], scale, request.qmax());
        result.codes[i * columns + j] = static_cast<std::int8_t>(code);
        const double difference = row[j] - code * scale;
        error += difference * difference;
      }
      result.scales[i] = scale;
      row_error[static_cast<std::size_t>(i)] = error;
    }
  });
  result.squared_error = std::accumulate(row_error.begin(), row_error.end(), 0.0);
}

}  // namespace mulligan
