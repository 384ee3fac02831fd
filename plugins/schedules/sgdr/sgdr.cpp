// Cosine annealing with warm restarts (Loshchilov & Hutter, "SGDR", ICLR 2017).
//
// Time t is measured in steps, epochs (passes over the data, fractional) or shares of the budget. Cycle i
// lasts T_i = period * period_multiplier^i; at T_cur after its start
//   lr = eta_min + (eta_max_i - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2,  eta_max_i = max(base_lr *
//   decay^i, eta_min).
// A cycle begins at eta_max_i; eta_min is only approached, at its end. The cycle is found by adding up whole
// cycles: a logarithm would put t = T_0 + T_1 into the wrong one by rounding.
#include "plugins/schedules/measure.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace {

namespace sdk = mulligan::sdk;

struct Config : mulligan::schedules::Warmup {
  double period = 0;
  double period_multiplier = 1;
  double eta_min = 0;
  double decay = 1;
  std::string by = "step";
};

class Sgdr final : public mulligan::schedules::WarmedSchedule<Config> {
 public:
  static constexpr const char* summary = "cosine annealing with warm restarts";
  static inline const sdk::Schema<Config> schema = mulligan::schedules::with_warmup_keys<Config>(
      sdk::key("period", &Config::period, "length T_0 of the first cycle, in the unit of `by`")
          .at_least(1e-6)
          .required(),
      sdk::key("period_multiplier", &Config::period_multiplier,
               "T_mult: each cycle is so many times as long as the last")
          .at_least(1),
      sdk::key("eta_min", &Config::eta_min, "learning rate that a cycle falls towards").at_least(0),
      sdk::key("decay", &Config::decay, "the rate at a restart is so many times that of the restart before")
          .range(0, 1),
      sdk::key("by", &Config::by,
               "unit of the period: steps, epochs, or shares of the wall clock or step budget")
          .choices("step|epoch|budget"));

  explicit Sgdr(const Config& config) : WarmedSchedule(config) {
    if (config_.by == "budget" && config_.period > 1) {
      throw sdk::Error(
          "with by = \"budget\" the period is a share of the budget and cannot exceed 1; lower it");
    }
    if (config_.by == "step" && config_.period < 1) {
      throw sdk::Error(
          "with by = \"step\" the period counts steps and cannot be below 1; raise it, or set by");
    }
  }

  sdk::Rate rate(const sdk::Progress& progress, double base_lr) const override {
    double into_cycle = config_.by == "step"    ? static_cast<double>(progress.step)
                        : config_.by == "epoch" ? progress.epoch
                                                : progress.budget_fraction;
    double length = config_.period;
    double peak = base_lr;
    std::int64_t cycle = 0;
    if (config_.period_multiplier == 1) {
      // Equal cycles need no summing, and fmod is exact.
      cycle = std::llround((into_cycle - std::fmod(into_cycle, length)) / length);
      into_cycle = std::fmod(into_cycle, length);
      peak *= std::pow(config_.decay, static_cast<double>(cycle));
    } else {
      for (; into_cycle >= length; ++cycle) {
        into_cycle -= length;
        length *= config_.period_multiplier;
        peak *= config_.decay;
      }
    }
    peak = std::max(peak, config_.eta_min);
    const double wave = (1 + std::cos(std::numbers::pi * into_cycle / length)) / 2;
    const double factor = mulligan::schedules::warmup_factor(config_, "budget", progress);
    return {factor * (config_.eta_min + (peak - config_.eta_min) * wave), cycle};
  }
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(Sgdr, sgdr);
