// The rules by which the optimiser benchmark of Modded-NanoGPT (docs/arena.md) takes a result, and holds one against
// another. A result is a number of steps; what is compared are validation losses in nats per token. The logs that are published with results
// (docs/arena.md, "Results") are read here, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan::stats {

// One training run: its validation losses by the number of updates made before.
struct ArenaRun {
  std::string name;                       // for people
  std::map<std::int64_t, double> losses;  // NaN: not finite
  std::int64_t planned_steps = 0;         // that its log names; 0: not known
};

// What runs say at one step.
struct ArenaStep {
  std::int64_t step = 0;
  std::size_t runs = 0;
  double mean = 0;
  std::optional<double> deviation;  // of the sample; absent for one run
  double value = 0;                 // (3.28 - mean) sqrt(n)
  double p = 1;                     // one-sided, of the z test with the benchmark's own sigma, 0.0013
  bool accepted = false;            // value >= 0.004
};

// The rule for losses of n >= 1 runs at `step`. Throws std::invalid_argument for none.
ArenaStep judge_arena_step(std::int64_t step, std::span<const double> losses);
// All steps that every run was validated at, rising; a step that one run lacks is none.
std::vector<ArenaStep> judge_arena(std::span<const ArenaRun> runs);
// The earliest that is accepted.
std::optional<ArenaStep> earliest_accepted(std::span<const ArenaStep> steps);

// Whether a result is better than another, not only accepted at fewer steps.
struct ArenaComparison {
  // ((mean_old - mean_new) + 0.000045 (S_old - S_new)) / sqrt(1/n_old + 1/n_new)
  double value = 0;
  double p = 1;         // one-sided, with sigma as above
  bool better = false;  // value >= 0.004
};
// Throws std::invalid_argument for a side without runs.
ArenaComparison compare_arena(const ArenaStep& old_result, const ArenaStep& new_result);

// Two runs with the same losses at every step that both were validated at, three or more: one run that would be
// counted twice. Their names, or nothing.
std::optional<std::pair<std::string, std::string>> same_arena_run(std::span<const ArenaRun> runs);

// A log: a script's code, then what it printed. A line "step:S/N val_loss:X NAME:Y ..." is
// a validation after S of N steps; a line whose S is less than the one before begins another run.
// `name` stands for the file, `metric` is the NAME of the losses. Throws data_error, naming the line, for a validation
// that cannot be read or lacks the metric, a run with two N or two losses at a step, and a log without any validation.
std::vector<ArenaRun> parse_arena_log(std::string_view text, const std::string& name,
                                      const std::string& metric);

// The runs of several logs as those of one result. Throws data_error where their N differ.
std::vector<ArenaRun> runs_of_arena_logs(const std::vector<std::string>& paths, const std::string& metric);

}  // namespace mulligan::stats
