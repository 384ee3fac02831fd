// Round to nearest: every weight by itself, with gptq's rule for the scales. The baseline of gptq.
#include <mulligan/quantizer.hpp>
#include <vector>

#include "plugins/quantizers/common/row_scale.h"

namespace mulligan {
namespace {

class Rtn : public sdk::Quantizer {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "round to nearest, one scale per row; needs no calibration";

  void quantize(const sdk::QuantizeRequest& request, sdk::QuantizeResult& result) override {
    const std::int64_t columns = request.columns;
    std::vector<double> row_error(static_cast<std::size_t>(request.rows));
    request.parallel(request.rows, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const float* row = request.weight + i * columns;
        const float scale = row_scale(row, columns, request.clip_sigmas, request.qmax());
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
    result.squared_error = 0;
    for (const double error : row_error) result.squared_error += error;
  }
};

}  // namespace
}  // namespace mulligan

MULLIGAN_EXPORT_QUANTIZER(mulligan::Rtn, rtn);
