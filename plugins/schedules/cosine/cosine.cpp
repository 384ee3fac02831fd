// Linear warm-up, then one half cosine down to a floor.
//
// With f the fraction of the run that is done, w = `warmup_fraction`, m = `min_factor`:
//   f < w:  lr = base_lr * f / w
//   else:   lr = base_lr * (m + (1 - m) * (1 + cos(pi * (f - w) / (1 - w))) / 2)
// (Loshchilov & Hutter, SGDR, without restarts.)
#include "plugins/schedules/measure.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  double warmup_fraction = 0.0;
  double min_factor = 0.0;
  std::string by = "budget";
};

class Cosine final : public sdk::Schedule {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "linear warm-up, then a half cosine down to a floor";
  static inline const sdk::Schema<Config> schema{
      sdk::key("warmup_fraction", &Config::warmup_fraction,
               "share of the run over which the rate rises from 0")
          .range(0, 0.99),
      sdk::key("min_factor", &Config::min_factor, "multiplier of the learning rate at the end").range(0, 1),
      sdk::key("by", &Config::by, "what the shares are taken of: the wall clock or step budget, or the steps")
          .choices("budget|step")};

  explicit Cosine(const Config& config) : config_(config) {}

  sdk::Rate rate(const sdk::Progress& progress, double base_lr) const override {
    const double done = std::min(mulligan::schedules::fraction_done(config_.by, progress), 1.0);
    const double warmup = config_.warmup_fraction;
    if (done < warmup) return {base_lr * done / warmup, 0};
    const double wave = (1 + std::cos(std::numbers::pi * (done - warmup) / (1 - warmup))) / 2;
    return {base_lr * (config_.min_factor + (1 - config_.min_factor) * wave), 0};
  }

 private:
  Config config_;
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(Cosine, cosine);
