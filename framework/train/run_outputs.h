// RunOutputs: what a training run writes while it goes on: its log, its metrics and its directory, in which another
// run may have lain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/config/run_config.h"
#include "framework/report/metrics_file.h"
#include "framework/report/run_directory.h"
#include "framework/report/run_log.h"
#include "framework/run/run_files.h"
#include "framework/run/run_plugins.h"
#include "framework/train/resume.h"

namespace mulligan {

class RunOutputs {
 public:
  // The log's lines, and those of plugins, go to the console, and are kept for a file to come.
  RunOutputs(const RunConfig& config, const ConsoleOptions& console);
  // Puts back the run that this one was to replace, unless something of this one has been saved.
  ~RunOutputs();

  const RunFiles& files() const { return files_; }
  RunLog& log() { return log_; }
  bool begun() const { return metrics_.has_value(); }
  MetricsFile& metrics() { return *metrics_; }  // once begun

  // The first rank: whether the run may be made where it is to be. Throws Error.
  void require_place(const ResumePoint& resume, bool resumed) const;
  // The first rank, when nothing can be refused any more: an earlier run is set aside, or this one's files go on.
  void begin(const ResumePoint& resume, const std::string& resolved_config);
  // Another rank, after that: it has a log of its own and keeps no metrics.
  void begin_on_rank(int rank, bool goes_on);
  // This run has saved something: from now on it is the one to keep.
  void keep();

 private:
  const RunConfig& config_;
  RunFiles files_;
  std::optional<ReplacedRun> replaced_;  // set aside; until this run has saved something
  RunLog log_;
  PluginLines plugin_lines_;
  std::optional<MetricsFile> metrics_;
};

}  // namespace mulligan
