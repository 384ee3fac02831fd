// Scores a model with test-time training, as a configuration's [ttt] says.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/run/evaluate_loaded.h"
#include "framework/run/plan_cache_counts.h"
#include "framework/ttt/ttt_report.h"

namespace mulligan {

class RunRanks;
struct TttResult;

struct TttOptions : ConsoleOptions {
  // Where ttt_result.json, metrics.jsonl (see ttt_outputs.h), ledger.json and the audit log go: the run
  // directory, whose metrics and ledger are continued, or any other folder. Empty: no files, but the audit
  // log, where one is asked for, goes into the folder the program was started in.
  std::filesystem::path directory;
  // Continue the unfinished test-time training whose state lies in `directory`; from the beginning where
  // there is none. Without: anew (ScoreState).
  bool resume = false;
  // The weights are those of an artifact.
  bool quantised = false;
  // Called with the result when its files are written, before a broken budget is refused. May be empty.
  std::function<void(const TttResult&)> on_result;
};

struct TttResult {
  std::string weights;         // what was scored, as the caller named it
  std::string weights_sha256;  // WeightOrigin::sha256
  std::string device;          // what computed it, as the backend describes itself
  // Before, and absent with on_collapse = "off": the evaluation of the same documents, and the windows of
  // test-time training without adaptation, of a long text some of them (compared_chunks). The gain is that of
  // report.compared. The seconds are those of both.
  std::optional<EvalResult> evaluation, without;
  EvalResult with;           // test-time training; seconds of scoring and training, without setup_seconds
  double setup_seconds = 0;  // planning and preparing the programs
  std::int64_t peak_device_memory_bytes = 0;  // that the backend had allocated at once
  TttReport report;
  std::vector<MadeCount> made;  // of all ranks, the clock being that of scoring and training
  // Of the score transform: "ngram_tilt", and the order in which it learns; "": none.
  std::string transform, transform_order;
  // No single order makes the scores one product of conditionals (TransformOrder::file).
  bool contested = false;
};

// `load` fills the masters of the weights, `origin` says where they come from. Tokens of the validation
// shards are cut to whole rows of eval.sequence_length where eval.drop_remainder asks for it, and what comes
// before the first BOS is not scored. Scores first in the evaluation's rows and in the windows without
// adaptation (the baseline of the gain and of the collapse detector), then with it. Deterministic: the same weights, data and seed ([run] seed draws
// the adapters) give the same score to the last digit. Throws Error; data_error, before anything is scored,
// when the weights belong to another tokenizer (require_data_of) or the two ways of counting bytes differ,
// run_error when the result breaks a budget of [ledger] under strict rules. Where `directory` is set, a
// signal loses the batch under way, and a kill what eval.save_seconds allows at most; the result of a
// continued run is the same to the bit, but for seconds, which are those of all attempts.
TttResult run_ttt(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                  const WeightLoader& load, const TttOptions& options = {});
// By several ranks, which call it alike: with as many lanes ([ttt] lanes) the score is the same to the last
// digit for any number of them. Only the first writes files and fills the result's totals; no state is kept.
TttResult run_ttt(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                  const WeightLoader& load, const TttOptions& options, RunRanks& ranks);

}  // namespace mulligan
