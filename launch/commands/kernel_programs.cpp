#include "launch/commands/kernel_programs.h"

#include <algorithm>
#include <vector>

#include "framework/artifact/calibrate.h"
#include "framework/check/adapter_probe.h"
#include "framework/check/loss_probe.h"
#include "framework/ranks/communicator.h"
#include "framework/run/loaded_model.h"
#include "framework/run/parameter_plan.h"
#include "framework/run/run_plugins.h"
#include "framework/step/training_programs.h"
#include "framework/ttt/adapter_set.h"
#include "framework/ttt/ttt_inputs.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {
namespace {

constexpr int made_up_bos = 1;

// Documents enough for one batch and one training of the base model: chunk after chunk up to the longest
// window, so that no two have as many.
std::vector<std::uint16_t> made_up_documents(const TttConfig& ttt, std::int64_t row_tokens) {
  std::vector<std::uint16_t> tokens;
  for (std::int64_t document = 0; document < ttt.batch_documents; ++document) {
    const std::int64_t length = 1 + std::min(ttt.chunk_tokens * (1 + document % 2), ttt.context_tokens);
    tokens.push_back(made_up_bos);
    tokens.insert(tokens.end(), static_cast<std::size_t>(length), std::uint16_t{made_up_bos + 1});
  }
  const std::int64_t rest = row_tokens - static_cast<std::int64_t>(tokens.size());
  if (rest > 0) tokens.insert(tokens.end(), static_cast<std::size_t>(rest), std::uint16_t{made_up_bos + 1});
  return tokens;
}

void finish(Backend& backend) {
  backend.synchronize();
}

}  // namespace

void make_training_programs(LoadedConfig& loaded, PluginHost& host, int ranks) {
  for (Phase& phase : loaded.config.phases) phase.backend.reset();
  resolve_run_plugins(loaded, host);
  const RunConfig& config = loaded.config;
  const std::vector<PlannedParameter> parameters = plan_parameters(config);
  const RunPlugins plugins = make_run_plugins(loaded, host);
  const LossProbe check(*plugins.backend, *plugins.loss,
                        {8, config.model.vocabulary, config.model.width,
                         to_dtype(config.phases.front().compute_dtype), config.model.softcap},
                        false);
  OptimizerGroups groups(config, plugins, parameters);
  const std::unique_ptr<Communicator> communicator = make_planned_communicator(ranks);
  TrainingPrograms programs(config, "backend", plugins, parameters, groups, *communicator, made_up_bos);
  programs.bind();
  finish(*plugins.backend);
}

void make_scoring_programs(LoadedConfig& loaded, PluginHost& host) {
  resolve_run_plugins(loaded, host, PluginUse::score);
  const RunConfig& config = loaded.config;
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  LoadedModel model(*plugins.backend, config);
  model.load([](TensorStore&, const std::vector<ParameterLayout>&) {});
  const BaseModel view = base_model(model, config);
  const PlainScorer scorer(view, config, made_up_bos);
  if (config.quantize) {
    Calibrator calibrator(model.store(), config.model, model.layouts(),
                          {config.quantize->options.calibration_rows, config.train.sequence_length});
    SharedArena arena(*plugins.backend);
    arena.bind({&calibrator.program()}, model.store());
  }
  finish(*plugins.backend);
}

void make_ttt_programs(LoadedConfig& loaded, PluginHost& host) {
  loaded.config.ttt->config.lanes = 1;
  loaded.config.ttt->config.document_fraction = 1;
  resolve_run_plugins(loaded, host, PluginUse::adapt);
  const RunConfig& config = loaded.config;
  RunPlugins plugins = make_backend_plugin(loaded, host);
  const TttPlugins rule(loaded, host, plugins);
  LoadedModel weights(*plugins.backend, config, base_masters(*config.ttt));
  weights.load([](TensorStore&, const std::vector<ParameterLayout>&) {});
  const BaseModel model = base_model(weights, config);
  const TttSetup setup = rule.setup(config);
  const std::vector<std::uint16_t> tokens = made_up_documents(config.ttt->config, setup.row_tokens);
  const TttScorer run(model, setup, {tokens, made_up_bos, nullptr, {}});
  finish(*plugins.backend);
}

}  // namespace mulligan
