// The files of a run directory.
#pragma once

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <vector>

#include "framework/config/stored_paths.h"

namespace mulligan {

struct RunFiles {
  std::filesystem::path directory;
  std::filesystem::path config() const { return directory / "config.toml"; }  // resolved
  std::filesystem::path log() const { return directory / "log.txt"; }
  std::filesystem::path metrics() const { return directory / "metrics.jsonl"; }
  std::filesystem::path weights() const { return directory / "weights.safetensors"; }
  std::filesystem::path result() const { return directory / "result.json"; }
  std::filesystem::path ledger() const { return directory / "ledger.json"; }  // of all commands
  std::filesystem::path failed_log() const { return directory / "log_failed.txt"; }
  std::filesystem::path failed_metrics() const { return directory / "metrics_failed.jsonl"; }
  // Made later from the weights, by quantize, eval, ttt, calibrate and ensemble.
  std::filesystem::path artifact() const { return directory / "artifact.mulligan"; }
  std::filesystem::path quantize_result() const { return directory / "quantize_result.json"; }
  std::filesystem::path evaluations() const { return directory / "evaluations.jsonl"; }
  std::filesystem::path ttt_result() const { return directory / "ttt_result.json"; }
  std::filesystem::path calibration() const { return directory / "calibration.json"; }
  std::filesystem::path ensemble() const { return directory / "ensemble.json"; }
  std::filesystem::path samples() const { return directory / "samples.jsonl"; }  // text that generate kept
  // A folder with scores of the weights under other settings than the run's (`trials.h`).
  std::filesystem::path trials() const { return directory / "trials"; }
  // Made from all of these; can be made again at any time.
  std::filesystem::path report() const { return directory / "report.html"; }

  // The base folder of relative paths in config.toml (config/stored_paths.h).
  std::filesystem::path started_in() const { return directory / kStartFolderFile; }
  // The launcher's job that began the run or continued it (train/resume.h).
  std::filesystem::path attempt() const { return directory / "attempt.json"; }
  // Folder of event files that are written during training (metrics.tensorboard).
  std::filesystem::path tensorboard() const { return directory / "tensorboard"; }

  // Logs of the ranks after the first: ranks/0001.log, ...
  std::filesystem::path ranks() const { return directory / "ranks"; }

  // Unfinished scores of the weights, and their seconds so far (run/score_state.h).
  std::vector<std::filesystem::path> states() const {
    return {directory / "eval.state", directory / "eval.state.seconds", directory / "ttt.state",
            directory / "ttt.state.seconds"};
  }

  // The files that describe the weights of a finished run, and are wrong for other weights. The artifact is not one of them: it holds
  // the old weights.
  std::vector<std::filesystem::path> results() const {
    return {result(),      ledger(),   quantize_result(), evaluations(), ttt_result(),
            calibration(), ensemble(), samples(),         trials(),      report()};
  }
  // All of them, and the files that a failed start left. (The run files of the run before are restored then.)
  std::vector<std::filesystem::path> all() const {
    std::vector<std::filesystem::path> files = results();
    std::ranges::copy(states(), std::back_inserter(files));
    for (const auto& path : {weights(), artifact(), metrics(), log(), config(), failed_log(),
                             failed_metrics(), started_in(), attempt(), ranks(), tensorboard()}) {
      files.push_back(path);
    }
    return files;
  }
};

}  // namespace mulligan
