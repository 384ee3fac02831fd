// Rounding to the nearest code that breaks its contract in the way that `how` says.
#include <mulligan/half.hpp>
#include <mulligan/quantizer.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  std::string how = "not_at_all";
};

class Flawed : public sdk::Quantizer {
 public:
  static constexpr const char* summary = "breaks its contract";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "the flaw").choices("not_at_all|beyond_bits|no_scale|understates|order")};

  explicit Flawed(const Config& config) : config_(config) {}

  void quantize(const sdk::QuantizeRequest& request, sdk::QuantizeResult& result) override {
    const int most = request.qmax() + (config_.how == "beyond_bits" && request.bits < 8 ? 1 : 0);
    double error = 0;
    std::int64_t pieces = 0;
    request.parallel(request.rows, 1, [&](std::int64_t, std::int64_t) { ++pieces; });
    for (std::int64_t row = 0; row < request.rows; ++row) {
      const float* w = request.weight + row * request.columns;
      float largest = 0;
      for (std::int64_t i = 0; i < request.columns; ++i) largest = std::max(largest, std::abs(w[i]));
      float scale = sdk::half_value(sdk::half_bits(largest / static_cast<float>(most)));
      if (config_.how == "order" && pieces > 1) scale *= 2;
      if (config_.how != "no_scale" || row > 0) result.scales[row] = scale;
      for (std::int64_t i = 0; i < request.columns; ++i) {
        const float code = scale > 0 ? std::clamp(std::nearbyint(w[i] / scale), -static_cast<float>(most),
                                                  static_cast<float>(most))
                                     : 0;
        result.codes[row * request.columns + i] = static_cast<std::int8_t>(code);
        error += std::pow(static_cast<double>(w[i]) - static_cast<double>(code * scale), 2);
      }
    }
    result.squared_error = config_.how == "understates" ? error / 2 : error;
  }

 private:
  Config config_;
};

}  // namespace

MULLIGAN_EXPORT_QUANTIZER(Flawed, flawed_quantizer);
