#include "framework/run/evaluate_loaded.h"

#include "framework/core/error.h"
#include "framework/eval/evaluator.h"
#include "framework/report/run_log.h"
#include "framework/run/run_plugins.h"
#include "framework/run/run_ranks.h"
#include "framework/run/score_state.h"
#include "framework/run/strict_rules.h"

namespace mulligan {

ValidationSet open_validation(const RunConfig& config, const WeightOrigin& origin, RunLog& log,
                              RunRanks* ranks) {
  if (config.data.validation.empty()) {
    throw data_error(
        "data.validation is not set; name the validation shards, for example data/fineweb_val_*.bin.");
  }
  ValidationSet validation = load_validation(config.data, config.model.vocabulary, config.eval.tokens);
  require_strict_validation(config, validation);
  if (!validation.note.empty()) log.line(validation.note);
  if (!validation.byte_note.empty()) log.line(validation.byte_note);
  validation.data.packing = packing_text(config.eval, config.model, validation.joined);
  if (ranks) ranks->require_same_data(validation.data);
  for (const std::string& note : require_data_of(origin, validation.data, config.data)) log.line(note);
  return validation;
}

EvalResult evaluate_loaded(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                           const WeightLoader& load, const ConsoleOptions& options, const ScoreFiles& files,
                           RunRanks& ranks) {
  if (!ranks.alone() && files.resume) {
    throw config_error("an evaluation by several ranks keeps no state; leave out --resume.");
  }
  resolve_run_plugins(loaded, host, PluginUse::score);
  ranks.require_same_run(loaded, host);
  const RunConfig& config = loaded.config;
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  Backend& backend = *plugins.backend;
  require_computing(backend, "nothing can be scored");
  RunLog log(options, {});
  ValidationSet validation = open_validation(config, origin, log, &ranks);
  log.print("scoring {} tokens with '{}' on {}", validation.tokens.size() - 1, origin.name,
            backend.info().description);

  LoadedModel model(backend, config, LoadedModel::Masters::scored);
  BoundEvaluator scoring(model.store(), config.model, model.layouts(),
                         {config.eval, scored_order(config.model), validation.segment_start()});
  model.load(load);
  const auto identity = [&] {
    return score_identity(loaded, ScoreCommand::eval, host, model.store(), model.layouts(),
                          validation.tokens);
  };
  if (!ranks.alone()) ranks.require_same(identity());
  const EvalResult result =
      evaluate_resumably(scoring.evaluator, validation, ranks.group(), ranks.alone() ? files : ScoreFiles{},
                         config.eval.save_seconds, identity, log, [&] {
                           ranks.note_step();
                           ranks.require_running();
                         });
  require_whole_score(config.ledger, result);
  log.result(score_text(result));
  return result;
}

}  // namespace mulligan
