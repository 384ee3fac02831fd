// How far a run has come, in the measure that a schedule's key `by` names, and the warm-up that every
// schedule has.
#pragma once

#include <mulligan/schedule.hpp>

#include <algorithm>
#include <string>

namespace mulligan::schedules {

// The fraction of the run that is done, in [0, 1]. by = "budget": of what bounds the run, wall clock or
// steps; "step": of total_steps. Throws when the run has no total_steps to be a fraction of.
inline double fraction_done(const std::string& by, const sdk::Progress& progress) {
  if (by != "step") return progress.budget_fraction;
  if (progress.total_steps <= 0) {
    throw sdk::Error(
        "by = \"step\" needs a run with a number of steps, but this one is bounded by its wall clock only; "
        "set the number of steps, or by = \"budget\"");
  }
  return static_cast<double>(progress.step) / static_cast<double>(progress.total_steps);
}

// Linear warm-up. The rate is that of the schedule times k / W in step k (from 1) of W, and all of it from
// then on.
struct Warmup {
  double warmup_fraction = 0;
  std::int64_t warmup_steps = 0;
};

// The share of the run that one step takes. Of a wall clock it is known from the pace so far; before the
// first step nothing is known of it, and a hundredth of the warm-up stands for it.
inline double share_of_step(const std::string& by, const sdk::Progress& progress, const Warmup& warmup) {
  if (progress.step > 0) return fraction_done(by, progress) / static_cast<double>(progress.step);
  if (progress.total_steps > 0) return 1 / static_cast<double>(progress.total_steps);
  return warmup.warmup_fraction / 100;
}

inline double warmup_factor(const Warmup& warmup, const std::string& by, const sdk::Progress& progress) {
  const auto step = static_cast<double>(progress.step + 1);
  if (warmup.warmup_steps > 0) return std::min(1.0, step / static_cast<double>(warmup.warmup_steps));
  if (warmup.warmup_fraction <= 0) return 1;
  const double end = fraction_done(by, progress) + share_of_step(by, progress, warmup);  // of the coming step
  return std::min(1.0, end / warmup.warmup_fraction);
}

// The share of the run that the warm-up takes.
inline double warmup_share(const Warmup& warmup, const std::string& by, const sdk::Progress& progress) {
  if (warmup.warmup_steps == 0) return warmup.warmup_fraction;
  return static_cast<double>(warmup.warmup_steps) * share_of_step(by, progress, warmup);
}

// A schedule with a warm-up. Config is derived from Warmup.
template <typename Config>
class WarmedSchedule : public sdk::Schedule {
 public:
  explicit WarmedSchedule(const Config& config) : config_(config) {
    if (config.warmup_fraction > 0 && config.warmup_steps > 0)
      throw sdk::Error("warmup_steps and warmup_fraction both say how long the warm-up is; leave one out");
  }

 protected:
  Config config_;
};

// The keys of Warmup, then `own`.
template <typename Config, typename... Keys>
sdk::Schema<Config> with_warmup_keys(const Keys&... own) {
  return sdk::Schema<Config>{
      sdk::key<Config, std::int64_t>("warmup_steps", &Config::warmup_steps,
                                     "steps over which the rate rises linearly; 0: warmup_fraction")
          .at_least(0),
      sdk::key<Config, double>("warmup_fraction", &Config::warmup_fraction,
                               "the same as a share of the run; 0: no warm-up")
          .range(0, 0.99),
      own...};
}

}  // namespace mulligan::schedules
