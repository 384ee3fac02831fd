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
#include "framework/stats/study.h"

namespace mulligan {

// One variant: overrides as of --set.
struct SweepRow {
  std::string name;
  std::vector<std::string> set;
};

// A sweep's TOML file:
//   config = "base.toml"            # of the run, relative to this file
//   directory = "runs/my_sweep"     # of the runs and of sweep.json, relative to the current folder
//   seeds = [1, 2, 3]
//   baseline = "fresh A"            # the row that the others are compared with; without it the first
//   [[rows]]
//   name = "fresh A"
//   set = ["ttt.adapters.warm_start_a=false"]
struct Sweep {
  std::string config;
  std::string directory;
  std::vector<double> seeds;  // whole numbers
  std::string baseline;       // name of a row
  std::vector<SweepRow> rows;
  std::size_t baseline_row() const;  // its index
};
// Throws config_error.
Sweep read_sweep(const std::string& path);

// What one row found with one seed.
struct SweepCell {
  EvalResult without;              // the trained model alone
  std::optional<EvalResult> with;  // with test-time training, where the configuration has any
  double norm = 0, drift = 0;      // |A| and |A - A0| after the last batch that was adapted
  bool collapsed = false;          // the collapse detector fired
  double score() const { return (with ? *with : without).val_bpb; }
};
struct SweepResult {
  std::vector<std::vector<SweepCell>> cells;  // by row, then by seed
};

// What a sweep does with a configuration, given from above: it knows neither training nor test-time training.
struct SweepSteps {
  // Trains in the run directory of the configuration, anew.
  std::function<void(LoadedConfig& loaded, const ConsoleOptions& options)> train;
  // Test-time training of `weights` with its files in `directory`, going on where an interrupted
  // sweep left it.
  std::function<SweepCell(LoadedConfig& loaded, const std::filesystem::path& weights,
                          const std::filesystem::path& directory, const ConsoleOptions& options)>
      adapt;
};

// Trains and scores. Rows that differ in [ttt] alone share one training per seed; a training that an earlier
// sweep finished with the same configuration is used again. `overrides` (as of --set) come before those of
// the rows. Writes a run directory for each training and each score, and sweep.json. Throws Error.
SweepResult run_sweep(const Sweep& sweep, const std::vector<std::string>& overrides, PluginHost& host,
                      const SweepSteps& steps, const ConsoleOptions& options = {});

// Bits per byte by row and seed with mean and sample standard deviation; the gain over the baseline's row,
// which is named, as mean and standard deviation of the differences within each seed; and, a column of its
// own, what test-time training gains over the same weights without it. Below each row the norm and the drift
// of A; collapses are marked.
std::string sweep_table(const Sweep& sweep, const SweepResult& result);

// Intervals and tests over the final bits per byte: each row, and each against the baseline's. sweep.json holds it.
stats::Study sweep_study(const Sweep& sweep, const SweepResult& result);

}  // namespace mulligan
