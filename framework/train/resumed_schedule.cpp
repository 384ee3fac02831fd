#include "framework/train/resumed_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "framework/plugin/schedule.h"
#include "framework/run/run_plugins.h"
#include "framework/step/phase_progress.h"

namespace mulligan {
namespace {

constexpr int places = 64;

struct Moment {
  std::int64_t step = 0;  // updates done
  double seconds = 0;     // of the training clock
  double epoch = 0;
};

// As far as a run of `config` has come there.
mlg_progress progress_of(const RunConfig& config, const Moment& moment) {
  const TrainConfig& train = config.train;
  const double spent = train.budget_seconds > 0
                           ? moment.seconds / (train.budget_seconds - train.reserve_seconds)
                           : static_cast<double>(moment.step) / static_cast<double>(train.steps);
  return run_progress(config, moment.step, std::clamp(spent, 0.0, 1.0), moment.epoch);
}

// Evenly from the checkpoint to the end of the longer of both runs.
Moment moment_at(int place, const TrainConfig& saved, const TrainConfig& now,
                 const CheckpointManifest& manifest) {
  const double share = static_cast<double>(place) / places;
  const double begin = manifest.progress.elapsed_seconds;
  const double end = std::max({begin, saved.budget_seconds, now.budget_seconds});
  const std::int64_t left = std::max<std::int64_t>(0, std::max(saved.steps, now.steps) - manifest.step);
  return {manifest.step + std::llround(share * static_cast<double>(left)), begin + share * (end - begin),
          static_cast<double>(place) / 8};
}

struct FollowedSchedule {
  const PluginTable& table;
  Schedule schedule;
};

FollowedSchedule followed(const LoadedConfig& loaded, const OptimizerConfig& optimizer, PluginHost& host) {
  const PluginTable& table = optimizer.schedule ? *optimizer.schedule : loaded.config.schedule;
  return {table, Schedule(load_plugin(host, MLG_SCHEDULE, table), loaded.plugin(table.section))};
}

std::string horizon_text(const RunConfig& saved, const RunConfig& now) {
  const std::int64_t was = horizon_steps(saved), is = horizon_steps(now);
  if (was == is || was <= 0) return {};
  return fmt::format(", for the schedule's last step was {} and is {} (schedule.horizon_steps = {} keeps it)",
                     was, is, was);
}

}  // namespace

std::string changed_rates(const LoadedConfig& saved, const LoadedConfig& now, PluginHost& host,
                          const CheckpointManifest& manifest) {
  for (const OptimizerConfig& optimizer : now.config.optimizers) {
    const auto before = std::ranges::find(saved.config.optimizers, optimizer.name, &OptimizerConfig::name);
    if (before == saved.config.optimizers.end()) continue;
    const PluginTable& was = before->schedule ? *before->schedule : saved.config.schedule;
    const PluginTable& is = optimizer.schedule ? *optimizer.schedule : now.config.schedule;
    if (was.plugin != is.plugin)
      return fmt::format("[{}] was {} and is now {}", is.section, was.plugin, is.plugin);
    const FollowedSchedule saved_schedule = followed(saved, *before, host);
    const FollowedSchedule schedule = followed(now, optimizer, host);
    for (int place = 0; place <= places; ++place) {
      const Moment moment = moment_at(place, saved.config.train, now.config.train, manifest);
      const double rate_was = saved_schedule.schedule.rate(progress_of(saved.config, moment), before->lr).lr;
      const double rate_is = schedule.schedule.rate(progress_of(now.config, moment), optimizer.lr).lr;
      if (rate_was == rate_is) continue;
      if (place == 0 && manifest.step > 0) {
        const Moment last{moment.step - 1, moment.seconds - manifest.progress.step_seconds, moment.epoch};
        return fmt::format(
            "the learning rate of [optimizer.{}] was {:.6g} at step {} and is {:.6g} at step {}{}",
            optimizer.name, saved_schedule.schedule.rate(progress_of(saved.config, last), before->lr).lr,
            moment.step, rate_is, moment.step + 1, horizon_text(saved.config, now.config));
      }
      return fmt::format("the learning rate of [optimizer.{}] at step {} was to be {:.6g} and is {:.6g}{}",
                         optimizer.name, moment.step + 1, rate_was, rate_is,
                         horizon_text(saved.config, now.config));
    }
  }
  return {};
}

}  // namespace mulligan
