// Everything that a run directory says about its run, read back for reports and comparisons.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/resolved_settings.h"
#include "framework/report/metrics_reader.h"
#include "framework/report/run_directory.h"
#include "framework/report/trials.h"

namespace mulligan::report {

// calibration.json of a run directory, for its report.
struct CalibrationResult {
  struct Bin {
    double low = 0, high = 0, count = 0, confidence = 0, accuracy = 0;
  };
  struct Figures {
    std::string name;
    double items = 0, accuracy = 0, confidence = 0, ece = 0, adaptive_ece = 0, mce = 0, brier = 0,
           loss_nats = 0;
    std::optional<double> swagger, swagger_gap;  // absent: nothing was wrong, or nothing right
  };
  struct Set {
    Figures all;
    std::vector<Bin> bins;
    std::vector<Figures> subjects;
  };
  std::string weights;  // what answered
  std::vector<Set> sets;
};

// Throws data_error that names the file where it is not as mulligan probe calibration writes it.
CalibrationResult read_calibration_result(const std::filesystem::path& path);

// ensemble.json of a run directory, for its report.
struct EnsembleResult {
  struct Figures {
    double loss_nats = 0, accuracy = 0;
    std::optional<double> bpb, ece;  // absent: without a tokenizer; of members
  };
  std::string weights, plugin, settings;
  double members = 0, seed = 0, tokens = 0;
  Figures model, reference, ensemble;
  std::vector<double> member_loss_nats, member_accuracy;
  double mean_loss_nats = 0, ambiguity_nats = 0, disagreement = 0;
  double member_bytes = 0, kept_bytes = 0, all_bytes = 0;
};

// Throws data_error that names the file where it is not as mulligan probe ensemble writes it.
EnsembleResult read_ensemble_result(const std::filesystem::path& path);

using NamedNumbers = std::vector<std::pair<std::string, double>>;

// result.json. Absent numbers were not written.
struct TrainingResult {
  std::optional<double> parameters, steps, tokens, tokens_per_second, peak_memory_bytes;
  std::optional<double> initial_loss_nats, final_loss_nats, run_loss_nats;
  std::optional<double> val_loss_nats, val_bpb, val_tokens, val_bytes;
  bool val_masked = false;  // of tokens that were filled in
  std::string
      byte_rule;  // whose bytes val_bpb is divided by, and by the other rule, in words; "": not written
  std::optional<double> overlap,
      overlap_copied;  // validation text in the training data: with changes, as it is
  NamedNumbers phase_seconds;
  std::vector<std::string> broken_limits, plugins;  // plugins as "optimizer muon 1.0"
  std::vector<std::string> doctor;                  // what its checks failed or warned of, as "D26: ..."
  std::string device, cpu, commit, weights, host, started, command;
  std::string made;  // on the device: before the training clock, on it and after it, by what was made
  std::string determinism, backend_promise;  // levels
  std::optional<double> ranks, nodes, restarts;
  std::string launcher;
  std::string config_sha256, weights_sha256;  // of settings_digest, of the tensors that were saved
  std::optional<double> duration_seconds;     // of all phases of training and its validations
  // With metrics.energy; figures that were not measured are absent, with the reasons in energy_absent.
  bool energy_asked = false;
  std::optional<double> joules, joules_per_token;
  std::vector<std::string> energy_counters, energy_absent;
};

// quantize_result.json.
struct QuantizeResult {
  struct Tensor {
    std::string name, shape, format;
    double bytes = 0, bits_per_element = 0;
  };
  double artifact_bytes = 0;
  std::string artifact_sha256, weights_sha256;  // of its file, of what it was made of; "": not written
  // Of code; evaluation_source_bytes is what the budget counts.
  std::optional<double> evaluation_source_bytes, source_bytes, binary_bytes;
  double limit_bytes = 0;  // 0: none
  std::vector<Tensor> tensors;
};

// ledger.json: all commands of the run so far.
struct LedgerResult {
  struct Budget {
    std::string key, what;
    double used = 0, limit = 0;
  };
  NamedNumbers phase_seconds;
  std::vector<Budget> budgets;
  std::vector<std::string> broken;  // sentences without full stop
};

// ttt_result.json. Bits per byte, or nats per token where bytes were not counted.
struct TttRecord {
  struct Batch {
    double queue = 0, running = 0;
    // Of the windows that were also scored without adaptation; NaN: not known.
    double running_with = 0, running_without = 0;
    std::vector<std::pair<std::string, std::pair<double, double>>> adapters;  // name -> norm, drift
  };
  struct Bin {
    double shortest = 0, longest = 0, documents = 0, with = 0, without = 0;
  };
  struct Phase {
    double number = 0, documents = 0, tokens = 0, seconds = 0;
    std::vector<double> step_loss_nats;
  };
  std::string weights;  // what was scored
  std::string weights_sha256;
  // Of all tokens; of the windows that were scored both ways; and of the evaluation.
  std::optional<double> with_bpb, compared_bpb, without_bpb, evaluation_bpb;
  std::optional<double> tokens, bytes;  // that were scored
  double seconds = 0, setup_seconds = 0;
  std::string made;  // on the device: before scoring, meanwhile and after it, by what was made
  bool fell_back = false;
  std::string invalid_reason;  // not empty: the run is invalid, and there is no score
  std::optional<double> collapsed_at_batch;
  bool bits = true;  // scores are bits per byte
  // Of the score transform; "": none.
  std::string transform, transform_order;
  bool contested = false;
  std::optional<double> untransformed_bpb;  // the same scores without it
  std::vector<Batch> batches;
  std::vector<Bin> bins;
  std::vector<Phase> phases;
};

struct RunRecord {
  RunFiles files;
  std::string name;  // of [run]; the folder's where that is empty
  std::vector<ResolvedSetting> settings;
  MetricsHistory metrics;
  std::optional<TrainingResult> result;  // absent: the run has not finished
  std::vector<EvaluationRecord> evaluations;
  std::vector<TrialRecord> trials;  // under other settings: never compared with other runs
  std::optional<LedgerResult> ledger;
  std::optional<QuantizeResult> quantize;
  std::vector<TextSample> samples;
  std::optional<CalibrationResult> calibration;
  std::optional<EnsembleResult> ensemble;
  std::optional<TttRecord> ttt;     // absent where it is void
  std::string ttt_invalid;          // why, or empty
  std::vector<std::string> doubts;  // run_observations.h

  // The value of a setting in TOML syntax without quotes; "" where there is none.
  std::string setting(std::string_view key) const;
  // Whether its losses are of masked tokens that were filled in, not of the next token.
  bool fills_in_masked() const;
  // The same as a number; 0 where there is none.
  double number(std::string_view key) const;
  // The newest score of an artifact.
  const EvaluationRecord* quantized() const;
};

// Throws data_error where `directory` holds no run (neither metrics.jsonl nor result.json), or one of its
// files is damaged, naming the file and, of files with lines, the line.
RunRecord read_run(const std::filesystem::path& directory);
// The same of several, in their order.
std::vector<RunRecord> read_runs(const std::vector<std::string>& directories);

}  // namespace mulligan::report
