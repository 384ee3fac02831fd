// mulligan doctor
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/data/shard.h"
#include "framework/doctor/corpus_checks.h"
#include "framework/doctor/loss_checks.h"
#include "framework/run/parameter_plan.h"
#include "framework/run/run_plugins.h"
#include "launch/commands/commands.h"
#include "launch/commands/doctor_load.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

struct DoctorArguments {
  RunOptions run;
  std::vector<std::string> stages;
  std::string json;
  ParityArguments parity;
  bool all_elements = false;
  std::uint64_t tokens = std::uint64_t{1} << 22;
};

bool asked_for(const DoctorArguments& arguments, const char* stage) {
  return arguments.stages.empty() || std::ranges::find(arguments.stages, stage) != arguments.stages.end();
}

void add(std::vector<doctor::Finding>& findings, std::vector<doctor::Finding> more) {
  std::ranges::move(more, std::back_inserter(findings));
}

std::vector<doctor::Finding> data_findings(const DoctorArguments& arguments, const RunConfig& config) {
  std::optional<Tokenizer> tokenizer;
  if (!config.data.tokenizer.empty()) tokenizer = Tokenizer::load(config.data.tokenizer);
  return doctor::check_shards_as_corpus(find_shards(training_patterns(config.data), DataSplit::train),
                                        find_shards({config.data.validation}, DataSplit::validation),
                                        static_cast<int>(config.model.vocabulary),
                                        tokenizer ? &*tokenizer : nullptr, arguments.tokens);
}

std::vector<doctor::Finding> loss_findings(const RunPlugins& plugins, const RunConfig& config) {
  if (!plugins.backend->info().computes) {
    doctor::Finding skipped{"D01",
                            "loss of equal logits",
                            doctor::Verdict::skip,
                            "not computed",
                            "",
                            "the backend computes nothing",
                            "choose one that does, --set backend.plugin=cpu"};
    return {skipped};
  }
  return doctor::check_loss_values(*plugins.backend, *plugins.loss, static_cast<int>(config.model.vocabulary),
                                   config.model.softcap, to_dtype(config.train.compute_dtype));
}

// Checks that need weights, or that take long: only when they are asked for, and `load` also where the run
// starts from a file.
std::vector<doctor::Finding> weight_findings(const DoctorArguments& arguments, LoadedConfig& loaded,
                                             PluginHost& host) {
  const auto named = [&](const char* stage) {
    return std::ranges::find(arguments.stages, stage) != arguments.stages.end();
  };
  ParityArguments parity = arguments.parity;
  if (parity.weights.empty()) parity.weights = loaded.config.init.from;
  std::vector<doctor::Finding> findings;
  if (named("load") || (asked_for(arguments, "load") && !parity.weights.empty())) {
    if (parity.weights.empty())
      throw config_error("--stage load needs weights: name them with --weights, or set init.from.");
    add(findings, load_findings(loaded, host, parity.weights, arguments.all_elements));
  }
  if (named("forward")) add(findings, parity_findings(loaded, host, parity));
  return findings;
}

void run(const DoctorArguments& arguments) {
  require_one_process("doctor");
  PluginHost host = arguments.run.plugin_host();
  LoadedConfig loaded = load_complete_config(arguments.run.config, arguments.run.overrides, host);
  std::vector<doctor::Finding> findings;
  if (asked_for(arguments, "data")) add(findings, data_findings(arguments, loaded.config));
  if (asked_for(arguments, "loss"))
    add(findings, loss_findings(make_run_plugins(loaded, host), loaded.config));
  add(findings, weight_findings(arguments, loaded, host));
  fmt::print("{}", printable(doctor::findings_text(findings), LineBreaks::kept));
  if (!arguments.json.empty())
    write_file_atomically(arguments.json, doctor::findings_json(findings).dump(1) + "\n");
  if (doctor::worst(findings) == doctor::Verdict::fail)
    throw run_error("a check of this run failed; see above.");
  const bool skipped =
      std::ranges::any_of(findings, [](const auto& f) { return f.verdict == doctor::Verdict::skip; });
  if (skipped) throw config_error("a check of this run could not be made; see above.");
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("doctor", "Checks what a run would learn from and with, before it does: data, loss");
  auto arguments = std::make_shared<DoctorArguments>();
  command->add_option("config", arguments->run.config, "Run configuration (TOML)")
      ->required()
      ->type_name("FILE");
  arguments->run.declare(*command);
  command
      ->add_option("--stage", arguments->stages,
                   "Only these checks: data, loss, load (a weights file), forward (op by op against a "
                   "reference); without it "
                   "all but forward")
      ->check(CLI::IsMember({"data", "loss", "load", "forward"}));
  command
      ->add_option("--weights", arguments->parity.weights,
                   "Weights of the stages load and forward: a file, or a folder with model.safetensors; "
                   "without it init.from")
      ->type_name("PATH");
  command->add_flag("--all-elements", arguments->all_elements,
                    "Stage load: compare every element with the file, not 64 of each tensor");
  command
      ->add_option("--parity", arguments->parity.against,
                   "Stage forward: a backend, or a .safetensors file of another program's values")
      ->type_name("REFERENCE")
      ->capture_default_str();
  command->add_flag("--inject", arguments->parity.inject,
                    "Stage forward: values of the file take the place of the computed ones");
  command->add_flag("--verbose", arguments->parity.verbose, "Stage forward: a line for each op");
  command
      ->add_option("--tokens", arguments->tokens,
                   "Tokens of training and of validation data that are looked at, at most")
      ->check(CLI::Range(std::uint64_t{65'536}, std::uint64_t{1} << 36))
      ->capture_default_str();
  command->add_option("--json", arguments->json, "File that the findings are written to")->type_name("FILE");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
