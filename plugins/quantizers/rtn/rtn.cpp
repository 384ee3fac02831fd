// Round to nearest: every weight by itself, with gptq's rule for the scales. The baseline of gptq.
#include "plugins/quantizers/common/row_scale.h"

namespace mulligan {
namespace {

class Rtn : public sdk::Quantizer {
 public:
  static constexpr const char* summary = "round to nearest, one scale per row; needs no calibration";

  void quantize(const sdk::QuantizeRequest& request, sdk::QuantizeResult& result) override {
    round_to_nearest(request, result, [&](const float* row) {
      return row_scale(row, request.columns, request.clip_sigmas, request.qmax());
    });
  }
};

}  // namespace
}  // namespace mulligan

MULLIGAN_EXPORT_QUANTIZER(mulligan::Rtn, rtn);
