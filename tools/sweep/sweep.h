// A sweep: the same configuration in several variants (rows) and seeds, compared in one table.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/train/training_observer.h"
#include "tools/stats/observations.h"
#include "tools/stats/study.h"

namespace mulligan {

// One variant: overrides as of --set, or a configuration of its own, or both.
struct SweepRow {
  std::string name;
  std::string config;  // "" = the sweep's
  std::vector<std::string> set;
  std::int64_t ranks = 1;                  // processes of its trainings
  Origin origin = Origin::command_line();  // of `set`
};

// A sweep's TOML file. declare_keys() in sweep.cpp says what the keys mean; each [[rows]] is a SweepRow.
struct Sweep {
  std::string config;
  std::string directory;
  std::vector<double> seeds;  // whole numbers
  std::string baseline;       // name of a row
  std::string metric = "val_bpb";
  double margin = 0;
  bool costs = false;
  double target_loss_nats = 0;
  std::vector<double> ladder;  // whole numbers from 1 on, rising; empty: one length
  std::int64_t target_steps = 0;
  std::vector<SweepRow> rows;
  SettingsFrom own;                  // settings of all rows: this file, and what a ladder sets
  bool without_ttt = false;          // scores the trained weights alone; no key of the file
  std::size_t baseline_row() const;  // its index
};
// Throws config_error.
Sweep read_sweep(const std::string& path);

// What the training of one row with one seed took. Figures that were not measured are absent.
struct SweepCost {
  std::optional<double> tokens_per_second;  // of all ranks
  std::optional<double> seconds_to_target;  // of training, to the first report of a mean loss at the target
  std::optional<double> process_bytes;      // peak of the first rank's process
  std::optional<double> device_bytes;       // peak of what its backend had allocated
  std::optional<double> joules, joules_per_token;
  std::vector<std::string> energy_absent;  // why
};

// What one row found with one seed.
struct SweepCell {
  EvalResult without;              // the trained model alone
  std::optional<EvalResult> with;  // with test-time training, where the configuration has any
  double norm = 0, drift = 0;      // |A| and |A - A0| after the last batch that was adapted
  bool collapsed = false;          // the collapse detector fired
  std::optional<SweepCost> cost;   // with Sweep::costs
  const EvalResult& final_score() const { return with ? *with : without; }
  double final_value(const std::string& metric) const {
    return metric == "val_bpb" ? final_score().val_bpb : final_score().val_loss_nats;
  }
};
struct SweepResult {
  std::vector<std::vector<SweepCell>> cells;  // by row, then by seed
};

// How a sweep trains.
struct SweepTraining {
  std::vector<MakeObserver> observers = {};    // watch each training in this process
  std::vector<std::string> plugin_paths = {};  // as of --plugin-path, for rows with several ranks
  // Trains in the run directory of the configuration in place of train(). May be empty.
  std::function<void(LoadedConfig& loaded)> instead = {};
};

// Trains and scores. Rows that differ in [ttt] alone share one training per seed; a training that an earlier
// sweep finished with the same configuration is used again. `overrides` (as of --set) come before those of
// the rows. Writes a run directory for each training and each score, and sweep.json. Throws Error.
SweepResult run_sweep(const Sweep& sweep, const std::vector<std::string>& overrides, PluginHost& host,
                      const SweepTraining& training = {}, const ConsoleOptions& options = {});

// Bits per byte by row and seed, or nats per token where a score has no bytes, with mean and sample standard deviation; the gain over the baseline's row,
// which is named, as mean and standard deviation of the differences within each seed; and, a column of its
// own, what test-time training gains over the same weights without it. Below each row the norm and the drift
// of A; collapses are marked.
std::string sweep_table(const Sweep& sweep, const SweepResult& result);

// Intervals and tests over the final scores (Sweep::metric): each row, and each against the baseline's, with
// tests of equality within Sweep::margin. sweep.json holds it.
stats::Study sweep_study(const Sweep& sweep, const SweepResult& result);

// What the trainings cost: speed, seconds to a loss, memory, energy, and which rows no other beats.

// From the result and the metrics of a run directory. With a target above 0 the seconds of training up to the
// first report (train.log_every) whose mean loss is not above it. Throws data_error.
SweepCost read_cost(const std::filesystem::path& directory, double target_loss_nats);
nlohmann::ordered_json cost_json(const SweepCost& cost);

// Means over the seeds of one row; a figure is absent where one seed has none.
struct RowCost {
  std::string name;
  std::int64_t ranks = 1;
  std::vector<double> tokens_per_second, seconds_to_target, process_bytes, device_bytes, joules,
      joules_per_token, metric = {};  // by seed; empty: absent
  bool pareto = false;
};

// Precondition: Sweep::costs. A row is on the Pareto front if no other row is as good in all of these and better in one:
// seconds (to the target, or per token without one), device memory, energy (if all rows have it), and metric. Means count.
std::vector<RowCost> row_costs(const Sweep& sweep, const SweepResult& result);

// Mean +- standard deviation of every figure by row, n, the front, and why energy is absent where it is.
std::string cost_table(const Sweep& sweep, const SweepResult& result);

// Short runs can lie: what leads after few steps need not lead after many. A ladder repeats a sweep at several lengths.

// One length.
struct LadderRung {
  double factor = 1;
  std::int64_t steps = 0;  // of each training
  Sweep sweep;             // its rows, in a folder of its own
  SweepResult result;
};

// The lengths of `sweep`, without results; one of factor 1 without a ladder. `overrides` are of --set. Throws config_error
// where a ladder has no train.steps to multiply, or a row sets its own.
std::vector<LadderRung> ladder_lengths(const Sweep& sweep, const std::vector<std::string>& overrides);

// Of each row but the baseline: the gain over it (Sweep::metric, lower is better) by length: mean, standard deviation over
// seeds, and what a doubling adds, with its interval of 95 % over seeds (two or more; a line through each seed's gains by
// the logarithm of the length). Empty for one rung.
std::string ladder_table(const std::vector<LadderRung>& rungs);

// A sentence where `steps` are less than half of `target`, 0 standing for none; otherwise "".
std::string short_runs_text(std::int64_t steps, std::int64_t target);

// Whether `folder` is a sweep's: it holds sweep.json.
bool is_sweep_folder(const std::filesystem::path& folder);

// Returns the final score of each row and seed in "rows" of sweep.json. If there is a score with test-time training, that is the
// final one. Throws data_error if a score has no `metric`.
stats::Observations observations_of(const nlohmann::ordered_json& rows, const std::string& metric);

struct SweepObservations {
  stats::Observations all;  // with the factor "row"
  std::string baseline;     // a row
};

// `metric`: val_bpb, val_loss_nats, or "" for the sweep's own. Throws config_error for another metric and data_error where
// sweep.json is not as this program writes it or has no such score.
SweepObservations observe_sweep(const std::filesystem::path& folder, const std::string& metric);

// The run directories below a sweep's folder, row by row in the order of their names.
std::vector<std::string> runs_of_sweep(const std::filesystem::path& folder);

// Throws data_error where `folder` holds trainings of a sweep but no sweep.json.
void require_finished_sweep(const std::filesystem::path& folder);

}  // namespace mulligan
