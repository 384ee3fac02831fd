// Full rate, then a power of the steps that are left; and a momentum that rises first and falls at the end.
//
// With s the updates done and N the last step (`end_step`, or the run's number of steps):
//   lr = min(base_lr, coefficient * max(N - s, 0)^power)
//   m  = low + (high - low) s / warmup          for s < warmup
//        high - (high - low) (s - N + cooldown) / cooldown   for s > N - cooldown
//        high                                   between them
// and the optimiser's momentum counts times m / high. Without warm-up and cool-down its factor is 1.
#include "plugins/schedules/measure.h"

#include <algorithm>
#include <cmath>

namespace {

namespace sdk = mulligan::sdk;

struct Config : mulligan::schedules::Warmup {
  double coefficient = 0;
  double power = 1.2;
  std::int64_t end_step = 0;
  double momentum_low = 0.85, momentum_high = 0.95;
  std::int64_t momentum_warmup_steps = 0, momentum_cooldown_steps = 0;
};

class PowerCool final : public mulligan::schedules::WarmedSchedule<Config> {
 public:
  static constexpr const char* summary = "constant rate, then a power of the steps that are left";
  static inline const sdk::Schema<Config> schema = mulligan::schedules::with_warmup_keys<Config>(
      sdk::key("coefficient", &Config::coefficient, "learning rate one step before the end")
          .at_least(0)
          .required(),
      sdk::key("power", &Config::power, "exponent of the number of steps that are left").range(1e-3, 100),
      sdk::key("end_step", &Config::end_step,
               "step at which the rate is 0, counted from 0; 0: the run's last")
          .at_least(0),
      sdk::key("momentum_low", &Config::momentum_low,
               "momentum at the start of its warm-up and the end of its "
               "cool-down")
          .range(0, 0.999999),
      sdk::key("momentum_high", &Config::momentum_high,
               "momentum between them; set the optimiser's momentum to this")
          .range(1e-6, 0.999999),
      sdk::key("momentum_warmup_steps", &Config::momentum_warmup_steps,
               "steps over which the momentum rises from momentum_low; 0: none")
          .at_least(0),
      sdk::key("momentum_cooldown_steps", &Config::momentum_cooldown_steps,
               "last steps, over which it falls to momentum_low; 0: none")
          .at_least(0));

  using WarmedSchedule::WarmedSchedule;

  sdk::Rate rate(const sdk::Progress& progress, double base_lr) const override {
    const std::int64_t end = config_.end_step > 0 ? config_.end_step : progress.total_steps;
    if (end <= 0) {
      throw sdk::Error(
          "powercool counts the steps that are left, but this run is bounded by its wall clock only; set the "
          "number of steps, or end_step");
    }
    const auto left = static_cast<double>(std::max<std::int64_t>(end - progress.step, 0));
    sdk::Rate rate{std::min(base_lr, config_.coefficient * std::pow(left, config_.power)), 0};
    rate.lr *= mulligan::schedules::warmup_factor(config_, "budget", progress);
    rate.momentum_factor = momentum(progress.step, end) / config_.momentum_high;
    return rate;
  }

 private:
  double momentum(std::int64_t step, std::int64_t end) const {
    const double range = config_.momentum_high - config_.momentum_low;
    const std::int64_t cooldown = config_.momentum_cooldown_steps, warmup = config_.momentum_warmup_steps;
    if (step < warmup)
      return config_.momentum_low + range * static_cast<double>(step) / static_cast<double>(warmup);
    const std::int64_t into = std::min(step, end) - (end - cooldown);
    if (cooldown == 0 || into <= 0) return config_.momentum_high;
    return config_.momentum_high - range * static_cast<double>(into) / static_cast<double>(cooldown);
  }
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(PowerCool, powercool);
