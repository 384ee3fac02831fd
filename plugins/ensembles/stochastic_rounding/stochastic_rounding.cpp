// LPE-BSR ("Ex Uno Pluria: Insights on Ensembling in Low Precision Number Systems", arXiv 2411.14860): members
// are independent stochastic roundings of one model's weights to b bits,
//   s = max|w| / (2^(b-1) - 1),  u = w / s,  w^ = s (floor(u) + [U < u - floor(u)]),
// so that the mean of w^ over members is w. Scales of a row (an output channel) or of the whole tensor. The
// reference (LPE-RTN) rounds to nearest on the same grid. Root-mean-square error:
// sqrt(2) times the reference's.
#include <mulligan/ensemble.hpp>

#include "plugins/ensembles/stochastic_rounding/rounding.h"

namespace mulligan {
namespace {

namespace rounding = stochastic_rounding;

struct Config {
  std::int64_t bits = 5;
  std::string scales = "row";
};

class StochasticRounding final : public sdk::Ensemble {
 public:
  static constexpr const char* summary = "members by stochastic rounding of the weights to b bits (LPE-BSR)";
  static inline const sdk::Schema<Config> schema{
      sdk::key("bits", &Config::bits, "bits of a weight").range(2, 16),
      sdk::key("scales", &Config::scales,
               "one scale for each row (an output channel) or for the whole tensor")
          .choices("row|tensor")};

  explicit StochasticRounding(const Config& config)
      : bits_(static_cast<int>(config.bits)), by_row_(config.scales == "row") {}

  void make(const sdk::EnsembleWeight& weight, float* out) const override {
    const std::int64_t columns = weight.columns;
    const float of_all = by_row_ ? 0 : rounding::scale_of(weight.centre, weight.rows * columns, bits_);
    weight.parallel(weight.rows, 16, [&](std::int64_t begin, std::int64_t end) {
      rounding::Draws draws(weight.seed, weight.member, weight.tensor);
      for (std::int64_t row = begin; row < end; ++row) {
        const float* from = weight.centre + row * columns;
        float* to = out + row * columns;
        const float scale = by_row_ ? rounding::scale_of(from, columns, bits_) : of_all;
        for (std::int64_t j = 0; j < columns; ++j) {
          to[j] = weight.reference()
                      ? rounding::to_nearest(from[j], scale, bits_)
                      : rounding::by_chance(from[j], scale, bits_,
                                            draws(static_cast<std::uint64_t>(row * columns + j)));
        }
      }
    });
  }

  // Codes packed, scales in fp32.
  double stored_bytes(std::int64_t rows, std::int64_t columns) const override {
    const double codes = static_cast<double>(rows) * static_cast<double>(columns) * bits_ / 8;
    return std::ceil(codes) + 4.0 * (by_row_ ? static_cast<double>(rows) : 1.0);
  }

 private:
  int bits_;
  bool by_row_;
};

}  // namespace
}  // namespace mulligan

MULLIGAN_EXPORT_ENSEMBLE(mulligan::StochasticRounding, stochastic_rounding);
