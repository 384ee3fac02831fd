// Linear warm-up, then one half cosine down to a floor.
//
// With f the fraction of the run that is done, w that of the warm-up, m = `min_factor`, after the warm-up:
//   lr = base_lr * (m + (1 - m) * (1 + cos(pi * (f - w) / (1 - w))) / 2)
// (Loshchilov & Hutter, SGDR, without restarts.)
#include "plugins/schedules/measure.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace {

namespace sdk = mulligan::sdk;

struct Config : mulligan::schedules::Warmup {
  double min_factor = 0.0;
  std::string by = "budget";
};

class Cosine final : public mulligan::schedules::WarmedSchedule<Config> {
 public:
  static constexpr const char* summary = "linear warm-up, then a half cosine down to a floor";
  static inline const sdk::Schema<Config> schema = mulligan::schedules::with_warmup_keys<Config>(
      sdk::key("min_factor", &Config::min_factor, "multiplier of the learning rate at the end").range(0, 1),
      sdk::key("by", &Config::by, "what the shares are taken of: the wall clock or step budget, or the steps")
          .choices("budget|step"));

  using WarmedSchedule::WarmedSchedule;

  sdk::Rate rate(const sdk::Progress& progress, double base_lr) const override {
    const double factor = mulligan::schedules::warmup_factor(config_, config_.by, progress);
    if (factor < 1) return {base_lr * factor, 0};
    const double done = std::min(mulligan::schedules::fraction_done(config_.by, progress), 1.0);
    const double warmup = mulligan::schedules::warmup_share(config_, config_.by, progress);
    if (done < warmup) return {base_lr, 0};
    const double wave = (1 + std::cos(std::numbers::pi * (done - warmup) / (1 - warmup))) / 2;
    return {base_lr * (config_.min_factor + (1 - config_.min_factor) * wave), 0};
  }
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(Cosine, cosine);
