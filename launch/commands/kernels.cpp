// mulligan plugins kernels
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/artifact/calibrate.h"
#include "framework/check/adapter_probe.h"
#include "framework/check/loss_probe.h"
#include "framework/core/error.h"
#include "framework/core/temporary_path.h"
#include "framework/ranks/communicator.h"
#include "framework/run/loaded_model.h"
#include "framework/run/parameter_plan.h"
#include "framework/run/run_plugins.h"
#include "framework/step/training_programs.h"
#include "framework/ttt/adapter_set.h"
#include "framework/ttt/ttt_inputs.h"
#include "framework/ttt/ttt_scorer.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"

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

// Each makes the programs of one stage of `loaded` to get their kernels: resolves its plugins, binds the programs, and waits for
// the backend. It computes nothing and reads no data. That of [backend] must compute nothing, like the cuda backend's device
// "compile"; phases run on it, too. Throws Error. Training with validation, as the first of `ranks` ranks, with the checks before
// the start.
void make_training_programs(LoadedConfig& loaded, PluginHost& host, int ranks) {
  for (Phase& phase : loaded.config.phases) phase.backend.reset();
  resolve_run_plugins(loaded, host);
  const RunConfig& config = loaded.config;
  const std::vector<PlannedParameter> parameters = plan_parameters(config);
  const RunPlugins plugins = make_run_plugins(loaded, host);
  const LossProbe check(*plugins.backend, *plugins.loss,
                        {8, config.model.vocabulary, config.model.width, config.phases.front().compute_dtype,
                         config.model.softcap},
                        false);
  OptimizerGroups groups(config, plugins, parameters);
  const std::unique_ptr<Communicator> communicator = make_self_communicator(ranks);
  TrainingPrograms programs(config, "backend", plugins, parameters, groups, *communicator, made_up_bos);
  programs.bind();
  plugins.backend->synchronize();
}

// Calibration, and plain evaluation of stored weights. Without [quantize] the latter alone.
void make_scoring_programs(LoadedConfig& loaded, PluginHost& host) {
  resolve_run_plugins(loaded, host, PluginUse::score);
  const RunConfig& config = loaded.config;
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  LoadedModel model(*plugins.backend, config);
  model.load([](TensorStore&, const std::vector<ParameterLayout>&) {});
  const BoundEvaluator scorer(model.store(), config.model, model.layouts(),
                              plain_options(config, made_up_bos));
  if (config.quantize) {
    const Calibrator calibrator(model.store(), config.model, model.layouts(),
                                {config.quantize->options.calibration_rows, config.train.sequence_length});
  }
  plugins.backend->synchronize();
}

// Test-time training on made-up documents, with the base model's training. Precondition: there is [ttt].
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
  plugins.backend->synchronize();
}

struct KernelArguments {
  RunOptions run;
  std::vector<std::string> configs;
  std::string architecture = "sm_90a", out;
};

// Adds the kernels of the configuration at `path` to `file`.
void compile(const KernelArguments& arguments, const std::string& path, const std::string& file,
             PluginHost& host) {
  const auto setting = [](const char* key, const std::string& value) {
    return fmt::format("backend.{}={}", key, toml_quoted(value));
  };
  const std::vector<SettingsFrom> more{
      {Origin::command_line("--architecture"), {setting("architecture", arguments.architecture)}},
      {Origin::command_line("--out"),
       {setting("kernel_file", file), "backend.plugin=cuda", "backend.device=compile"}}};
  const LoadedConfig described = load_config(path, arguments.run.overrides, more);
  const auto stage = [&](const auto& make) {
    LoadedConfig loaded = load_run_config(path, arguments.run.overrides, more);
    make(loaded);
  };
  // One rank, and as many as there are micro-batches: an optimiser's step on a share of a tensor may be another function
  // than on the whole of it.
  for (const std::int64_t ranks : std::set<std::int64_t>{1, described.config.train.micro_batches}) {
    stage([&](LoadedConfig& loaded) { make_training_programs(loaded, host, static_cast<int>(ranks)); });
  }
  stage([&](LoadedConfig& loaded) { make_scoring_programs(loaded, host); });
  if (described.config.ttt) stage([&](LoadedConfig& loaded) { make_ttt_programs(loaded, host); });
}

void run(KernelArguments& arguments) {
  require_one_process("plugins kernels");
  PluginHost host = arguments.run.plugin_host();
  // What lies at --out stays until all is compiled: it is replaced then, or not at all.
  TemporaryPath file(temporary_name(arguments.out));
  for (const std::string& config : arguments.configs) {
    compile(arguments, config, file.path().string(), host);
  }
  file.publish(arguments.out);
  fmt::print("{}: {} bytes\n", arguments.out, std::filesystem::file_size(arguments.out));
}

}  // namespace

void add_kernels_command(CLI::App& plugins) {
  CLI::App* command = plugins.add_subcommand(
      "kernels", "Compiles CUDA kernels of configurations ahead of time, into one file");
  auto arguments = std::make_shared<KernelArguments>();
  command->add_option("configs", arguments->configs, "Configurations (TOML)")->required()->type_name("FILE");
  arguments->run.declare(*command);
  command->add_option("--architecture", arguments->architecture, "GPU architecture, such as sm_80")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--out", arguments->out, "The file to write: backend.kernel_file of runs")
      ->required()
      ->type_name("FILE");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
