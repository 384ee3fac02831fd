// Scores a model with test-time training, as a configuration's [ttt] says.
#pragma once

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/run/evaluate_loaded.h"
#include "framework/ttt/ttt_outputs.h"

namespace mulligan {

class RunRanks;

// ttt_result.json (see ttt_outputs.h), ledger.json and the audit log also go to the `directory` of ScoreFiles: the run
// directory, whose ledger is continued, or any other folder. Empty: no files, but the audit log, where one is asked for,
// goes into the folder the program was started in.
struct TttOptions : ConsoleOptions, ScoreFiles {
  bool quantised = false;  // the weights are those of an artifact
};

// `load` fills the masters of the weights, `origin` says where they come from. Tokens of the validation
// shards are cut to whole rows of eval.sequence_length where eval.drop_remainder asks for it, and what comes
// before the first BOS is not scored. Scores first in the evaluation's rows and in the windows without
// adaptation (the baseline of the gain and of the collapse detector), then with it. The same weights, data and seed
// ([run] seed draws the adapters) give the same score to the last digit. Throws Error; data_error, before anything is
// scored, when the weights belong to another tokenizer (require_data_of) or the two ways of counting bytes differ,
// run_error when the result breaks a budget of [ledger] under strict rules. Where `directory` is set, a
// signal loses the batch under way, and a kill what eval.save_seconds allows at most; the result of a
// continued run is the same to the bit, but for seconds, which are those of all attempts.
//
// Several ranks call it alike; without `ranks` there is one. With as many lanes ([ttt] lanes) the score is the same to
// the last digit for any number of them. Only the first writes files and fills the result's totals; no state is kept.
TttResult run_ttt(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                  const WeightLoader& load, const TttOptions& options = {}, RunRanks* ranks = nullptr);

}  // namespace mulligan
