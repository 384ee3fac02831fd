// Warm-up, full rate, then a straight line down over the last part of the run.
//
// With f the fraction of the run that is done and w = `fraction`:
//   lr = base_lr * (f >= 1 - w ? max((1 - f) / w, min_factor) : 1);  w = 0: lr = base_lr.
// With `steps` = N in its place, w is the fraction that N steps take at the run's pace so far: N f / steps done.
// min_factor is a floor of the multiplier (the line is cut off there, not stretched), as in
// the record's script.
#include "plugins/schedules/measure.h"

#include <algorithm>

namespace {

namespace sdk = mulligan::sdk;

struct Config : mulligan::schedules::Warmup {
  double fraction = 0.75;
  std::int64_t steps = 0;
  double min_factor = 0.1;
  std::string by = "budget";
};

class Warmdown final : public mulligan::schedules::WarmedSchedule<Config> {
 public:
  static constexpr const char* summary = "constant rate, then linear decay over the last part of the run";
  static inline const sdk::Schema<Config> schema = mulligan::schedules::with_warmup_keys<Config>(
      sdk::key("fraction", &Config::fraction, "share of the run over which the rate falls; 0: it never falls")
          .range(0, 1),
      sdk::key("steps", &Config::steps,
               "steps over which it falls, in place of fraction; under a time budget their share follows "
               "from the pace of the run; 0: fraction")
          .at_least(0),
      sdk::key("min_factor", &Config::min_factor, "floor of the multiplier of the learning rate").range(0, 1),
      sdk::key("by", &Config::by, "what the share is taken of: the wall clock or step budget, or the steps")
          .choices("budget|step"));

  using WarmedSchedule::WarmedSchedule;

  sdk::Rate rate(const sdk::Progress& progress, double base_lr) const override {
    const double done = mulligan::schedules::fraction_done(config_.by, progress),
                 part = share(progress, done);
    base_lr *= mulligan::schedules::warmup_factor(config_, config_.by, progress);
    if (part <= 0) return {base_lr, 0};
    return {base_lr * (done >= 1 - part ? std::max((1 - done) / part, config_.min_factor) : 1), 0};
  }

 private:
  double share(const sdk::Progress& progress, double done) const {
    const auto steps = static_cast<double>(config_.steps);
    if (config_.steps == 0) return config_.fraction;
    if (config_.by == "step") return steps / static_cast<double>(progress.total_steps);
    return progress.step > 0 ? steps * done / static_cast<double>(progress.step) : 0;
  }
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(Warmdown, warmdown);
