// What a run of test-time training is opened with: its refusals, the tokens that it scores, its plugins and its model.
#pragma once

#include <memory>
#include <optional>

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"
#include "framework/eval/evaluator.h"
#include "framework/plugin/plugin_host.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_plugins.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

// Throws config_error where a configuration cannot be scored, or not under its rules.
void require_scorable(const LoadedConfig& loaded);

// The validation tokens that test-time training scores: all, or whole rows where the configuration leaves the remainder
// unscored. Throws data_error when a file is bad or nothing is left.
ValidationSet scored_validation(const RunConfig& config);

// The plugin instances of [ttt].
class TttPlugins {
 public:
  // From resolved keys (resolve_run_plugins); their kernels are made known to the backend of `run`. Throws
  // config_error, also where [run] determinism is then no longer kept.
  TttPlugins(const LoadedConfig& loaded, PluginHost& host, RunPlugins& run);

  // What a TttScorer of `config` needs; refers to both.
  TttSetup setup(const RunConfig& config) const;

 private:
  TttPlugin adapters_;
  Optimizer optimizer_;
  PhiloxDraws draws_;
  std::optional<Transform> transform_;
  std::optional<TttPlugin> base_;
  std::unique_ptr<Optimizer> base_optimizer_;
};

// Of what test-time training loads.
inline LoadedModel::Masters base_masters(const TttSection& ttt) {
  if (ttt.config.base_keeps_dtypes) return LoadedModel::Masters::as_trained;
  return ttt.base ? LoadedModel::Masters::fp32 : LoadedModel::Masters::scored;
}

// A view: `model` and `config` must outlive it.
inline BaseModel base_model(LoadedModel& model, const RunConfig& config) {
  return {model.store(), config.model, model.layouts(), model.compute(), scored_order(config.model)};
}

// Of the evaluation in rows of its own length, which test-time training is reported next to.
inline EvaluatorOptions plain_options(const RunConfig& config, int bos_id) {
  EvaluatorOptions options{config.eval, scored_order(config.model), bos_id};
  options.eval.mode = EvalMode::rows;
  options.eval.drop_remainder = false;
  return options;
}

}  // namespace mulligan
