#include "framework/train/run.h"

#include "framework/core/error.h"
#include "framework/dist/communicator.h"
#include "framework/eval/evaluator.h"
#include "framework/report/run_log.h"
#include "framework/train/replaced_run.h"
#include "framework/train/resume.h"
#include "framework/train/run_files.h"
#include "framework/train/run_plugins.h"
#include "framework/train/score_identity.h"
#include "framework/train/step_graphs.h"
#include "framework/train/trainer.h"
#include "framework/train/weights.h"

namespace mulligan {

RunResult train(LoadedConfig& loaded, PluginHost& host, const TrainOptions& options) {
  resolve_run_plugins(loaded, host);
  if (options.overwrite && !options.resume.empty()) {
    throw config_error("a run is either continued (--resume) or started anew (--overwrite); leave one out.");
  }
  const RunConfig& config = loaded.config;
  const std::vector<DirectoryLock> locks = lock_run(config, "train");
  // What killed processes left: from here on nobody else is at work there.
  const std::string recovered = ReplacedRun(config.run.directory, config.checkpoint.directory).recover();
  remove_checkpoint_leftovers(config.checkpoint.directory);
  remove_temporary_leftovers(config.run.directory);
  ResumePoint resume = find_resume_point(loaded, host, options.resume);
  if (!recovered.empty()) resume.notes.insert(resume.notes.begin(), recovered);
  for (const DirectoryLock& lock : locks) {
    if (!lock.warning().empty()) resume.notes.push_back("warning: " + lock.warning());
  }
  const std::unique_ptr<Communicator> communicator = make_self_communicator();
  return Trainer(loaded, host, *communicator, options, std::move(resume)).run();
}

EvalResult evaluate_loaded(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                           const WeightLoader& load, const ConsoleOptions& options, const ScoreFiles& files) {
  resolve_run_plugins(loaded, host, PluginUse::score);
  const RunConfig& config = loaded.config;
  if (config.data.validation.empty()) {
    throw data_error(
        "data.validation is not set; name the validation shards, for example data/fineweb_val_*.bin.");
  }
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  Backend& backend = *plugins.backend;
  if (!backend.info().computes) {
    throw config_error("[backend]: {} computes nothing, so nothing can be scored.",
                       backend.plugin().description());
  }
  RunLog log(options, {});
  ValidationSet validation = load_validation(config.data, config.model.vocabulary);
  if (!validation.note.empty()) log.line(validation.note);
  DataIdentity scored = validation.data;
  scored.packing = packing_text(config.eval);
  for (const std::string& note : require_data_of(origin, scored, config.data)) log.line(note);
  log.print("scoring {} tokens with '{}' on {}", validation.tokens.size() - 1, origin.name,
            backend.info().description);

  // Stored weights are read into f32 masters, whatever the training run's masters were.
  EvaluatorOptions evaluator_options;
  evaluator_options.eval = config.eval;
  evaluator_options.compute = to_dtype(config.train.compute_dtype);
  evaluator_options.looping = config.model.loop.extra_passes > 0;
  evaluator_options.bos_id = validation.bos_id;
  const std::vector<ParameterLayout> layouts = parameter_layouts(config.model, evaluator_options.compute);
  TensorStore store(backend);
  for (const ParameterLayout& layout : layouts) store.create(master_name(layout.spec.name), layout.spec.type);
  Evaluator evaluator(store, config.model, layouts, evaluator_options);
  Graph copies;
  build_refresh_copies(copies, layouts);
  store.create_externals(copies);
  Program refresh(backend, std::move(copies), "refresh");
  SharedArena arena(backend);
  arena.bind({&evaluator.program(), &refresh}, store);
  load(store, layouts);
  refresh.run();
  const std::unique_ptr<Communicator> communicator = make_self_communicator();
  const auto identity = [&] {
    return score_identity(loaded, ScoreCommand::eval, host, store, layouts, validation.tokens);
  };
  const EvalResult result = evaluate_resumably(evaluator, validation, *communicator, files,
                                               config.eval.save_seconds, identity, log);
  log.result(score_text(result));
  return result;
}

EvalResult evaluate_weights(LoadedConfig& loaded, PluginHost& host, const std::filesystem::path& weights,
                            const ConsoleOptions& options) {
  return evaluate_loaded(
      loaded, host, origin_of_weights(weights),
      [&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
        load_weights(weights, store, layouts);
      },
      options);
}

}  // namespace mulligan
