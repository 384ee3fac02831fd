// mulligan probe attention, mulligan probe attention-bias
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/core/stop_request.h"
#include "framework/data/loader.h"
#include "framework/model/elements/masking/config.h"
#include "framework/run/training_data.h"
#include "lab/attention/attention_look.h"
#include "lab/attention/attention_problem.h"
#include "lab/commands/lab_commands.h"
#include "launch/commands/run_options.h"
#include "launch/commands/trial.h"
#include "launch/commands/weight_source.h"

namespace mulligan {
namespace {

struct AttentionArguments {
  RunOptions run;
  std::string path, json;
  std::vector<double> betas = {2, 1.1, 4, 8};
  std::int64_t segments = 300, seeds = 5;
};

std::string look_text(const AttentionRecord& record) {
  std::string text = fmt::format("{} rows of each layer\n\n", record.rows);
  text +=
      "| slot | largest logit | rows with repeated maxima | mean error, ulp | its standard error | delta's "
      "error | of |\n|---|---|---|---|---|---|---|\n";
  for (const AttentionLayerRecord& layer : record.layers) {
    text += fmt::format("| {} | {:.2f} | {:.4f} | {:+.4f} | {:.4f} |", layer.slot, layer.largest_logit,
                        layer.repeated_rows, layer.error_ulp, layer.error_standard_error_ulp);
    text += layer.delta_error ? fmt::format(" {:.3g} | {:.3g} |\n", *layer.delta_error, *layer.delta_norm)
                              : std::string(" not known | |\n");
  }
  text += "\n| weight | spectral norm |\n|---|---|\n";
  for (const auto& [name, norm] : record.spectral_norms) text += fmt::format("| {} | {:.4f} |\n", name, norm);
  return text;
}

void look(const AttentionArguments& arguments) {
  require_one_process("probe attention");
  const StopSignals signals;
  WeightSource source = open_weights(arguments.path, arguments.run);
  require_next_token(source.loaded.config.model, "this command looks at causal attention");
  PluginHost host = arguments.run.plugin_host();
  resolve_run_plugins(source.loaded, host);
  const RunConfig& config = source.loaded.config;
  const RunPlugins plugins = make_backend_plugin(source.loaded, host);
  const doctor::Weights weights = doctor::weights_from(*plugins.backend, config, source.load);
  Loader loader(loader_options(config, unchecked_training_data(config), 0, 1));
  Batch row;
  loader.next(row);
  doctor::AttentionLook attention(source.loaded, host, "backend", config.phases.back());
  const AttentionRecord record = attention.look(weights, row, 0);
  fmt::print("{}", printable(look_text(record), LineBreaks::kept));
  if (!arguments.json.empty()) write_file_atomically(arguments.json, attention_json(record) + "\n");
}

void problem(const AttentionArguments& arguments) {
  require_one_process("probe attention-bias");
  const StopSignals signals;
  for (const double beta : arguments.betas) {
    if (!(beta >= 1 && beta <= 64)) throw config_error("--betas: {} is not between 1 and 64.", beta);
  }
  PluginHost host = arguments.run.plugin_host();
  LoadedConfig loaded = load_config(arguments.run.config, arguments.run.overrides);
  resolve_run_plugins(loaded, host, PluginUse::score);
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  const doctor::BiasTables tables =
      doctor::measure_biases(*plugins.backend, arguments.betas, arguments.segments, arguments.seeds);
  fmt::print("{}", tables.markdown);
  if (!arguments.json.empty()) write_file_atomically(arguments.json, tables.json + "\n");
}

}  // namespace

void add_probe_attention(CLI::App& probe) {
  auto arguments = std::make_shared<AttentionArguments>();

  CLI::App* of_model = probe.add_subcommand(
      "attention",
      "Compares a model's attention on a sequence of its training data with exact results, layer "
      "by layer");
  arguments->run.declare_weights(*of_model, arguments->path);
  of_model->add_option("--json", arguments->json, "File that the figures are written to")->type_name("FILE");
  arguments->run.declare(*of_model);
  of_model->callback([arguments] { look(*arguments); });

  CLI::App* made_up = probe.add_subcommand(
      "attention-bias",
      "Measures the rounding bias of attention with repeated maxima on a synthetic problem, with "
      "and without the rule");
  made_up->add_option("config", arguments->run.config, "Configuration (TOML); its backend computes")
      ->required()
      ->type_name("FILE");
  made_up->add_option("--betas", arguments->betas, "Values of model.attention.beta")
      ->delimiter(',')
      ->type_name("LIST")
      ->capture_default_str();
  made_up->add_option("--segments", arguments->segments, "Segments of 64 tokens")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  made_up->add_option("--seeds", arguments->seeds, "Number of random problems")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000}))
      ->capture_default_str();
  made_up->add_option("--json", arguments->json, "File that the figures are written to")->type_name("FILE");
  arguments->run.declare(*made_up);
  made_up->callback([arguments] { problem(*arguments); });
}

}  // namespace mulligan
