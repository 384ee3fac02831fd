// mulligan probe logits
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/core/stop_request.h"
#include "lab/commands/lab_commands.h"
#include "lab/probe/difference.h"
#include "launch/commands/run_options.h"
#include "launch/commands/trial.h"
#include "launch/commands/weight_source.h"

namespace mulligan {
namespace {

struct ProbeArguments {
  RunOptions run;
  probe::ProbeOptions probe;
  std::vector<std::string> paths;
  std::string json;
  std::vector<std::string> precisions = {"fp32", "bf16", "layercast-bf16"};
  std::vector<std::string> settings;  // "KEY=VALUE KEY=VALUE"
};

// Each precision as the run is, and then under each setting, whose effect the first batch size alone shows.
std::vector<probe::Measurement> measure(const ProbeArguments& arguments, const std::string& path) {
  std::vector<probe::Measurement> measurements;
  const auto with = [&](const std::string& setting, const probe::ProbeOptions& options) {
    RunOptions run = arguments.run;
    SettingsFrom& vary = run.more.emplace_back(Origin::command_line("--vary"), std::vector<std::string>());
    std::istringstream keys(setting);
    for (std::string key; keys >> key;) vary.settings.push_back(key);
    for (const std::string& name : arguments.precisions) {
      WeightSource source =
          open_weights(path, run);  // a configuration that a measurement resolves for itself
      PluginHost host = run.plugin_host();
      measurements.push_back(probe::measure(source.loaded, host, source.origin, source.load, name, options));
      measurements.back().setting = setting;
    }
  };
  with("", arguments.probe);
  probe::ProbeOptions first = arguments.probe;
  first.first_batch_alone = true;
  first.evaluate = false;
  for (const std::string& setting : arguments.settings) with(setting, first);
  return measurements;
}

void run(const ProbeArguments& arguments) {
  require_one_process("probe logits");
  const StopSignals signals;
  for (const std::string& name : arguments.precisions) probe::require_precision(name);
  if (!arguments.json.empty() && arguments.paths.size() > 1) {
    throw config_error("--json takes the figures of one run; probe each of the {} runs by itself.",
                       arguments.paths.size());
  }
  std::vector<std::vector<probe::Measurement>> runs;
  for (const std::string& path : arguments.paths) runs.push_back(measure(arguments, path));
  fmt::print("{}", printable(probe::probe_markdown(runs, arguments.probe), LineBreaks::kept));
  if (arguments.json.empty()) return;
  const std::string weights = weights_of(arguments.paths.front()).filename().string();
  write_file_atomically(arguments.json, probe::probe_json(runs.front(), arguments.probe, weights));
}

}  // namespace

void add_probe_logits(CLI::App& probe) {
  CLI::App* command = probe.add_subcommand(
      "logits",
      "Measures how batch size, precision and order of sums change a model's logits and generated "
      "texts");
  auto arguments = std::make_shared<ProbeArguments>();
  probe::ProbeOptions& options = arguments->probe;
  command
      ->add_option(
          "paths", arguments->paths,
          "Artifacts, run directories or weights files (.safetensors); of several the table has mean and standard deviation")
      ->required()
      ->type_name("PATH");
  arguments->run.declare_config(*command);
  command
      ->add_option(
          "--precisions", arguments->precisions,
          "fp32, bf16, fp16, layercast-bf16, layercast-fp16; the first is what others are held against")
      ->delimiter(',')
      ->type_name("NAMES")
      ->capture_default_str();
  command
      ->add_option("--batches", options.batches,
                   "Sequences that are computed at once; the first is what others are held against")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16))
      ->type_name("LIST")
      ->capture_default_str();
  command
      ->add_option("--vary", arguments->settings,
                   "Settings, separated by spaces, with which each precision is computed again, such as "
                   "run.fused_kernels=false; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  const auto count = [&](const char* name, std::int64_t& value, std::int64_t least, const char* what) {
    command->add_option(name, value, what)
        ->check(CLI::Range(least, std::int64_t{1} << 20))
        ->type_name("N")
        ->capture_default_str();
  };
  count("--sequences", options.sequences, 1, "Sequences of the validation set that are compared");
  count("--length", options.length, 1, "Tokens of a sequence");
  count("--prompt", options.prompt, 1, "Tokens of a sequence before its continuation");
  count("--tokens", options.tokens, 0, "Tokens of a continuation; 0: none");
  command->add_flag("--evaluate", options.evaluate, "Score the validation set in each precision, too");
  command->add_option("--json", arguments->json, "File that the figures are written to")->type_name("FILE");
  arguments->run.declare(*command);
  declare_quiet(*command, options);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
