// mulligan profile
#include "tools/cost/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "tools/cost/cost_text.h"
#include "tools/cost/prediction.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {
namespace {

struct ProfileArguments {
  RunOptions run;
  ProfileOptions profile;
  bool json = false;
  bool predict = false;
  bool graph = false;
  PredictOptions prediction;
  std::string card = known_cards().front().name;
};

std::string list_calls(const Graph& graph, const CallAccess& access) {
  std::map<std::uint32_t, std::size_t> numbers;  // of scratch values
  const auto name_of = [&](Value value) -> std::string {
    if (!value) return "-";
    const Value root = graph.root(value);
    std::string name = graph.info(root).name;
    if (graph.info(root).storage != Graph::Storage::external)
      name = fmt::format("%{}", numbers.try_emplace(root.id, numbers.size()).first->second);
    return value == root ? name : fmt::format("{}[{}]", name, graph.info(value).offset);
  };
  TextLines text;
  for (const Call& call : graph.calls()) {
    const std::vector<Access> accesses = access.of(call);
    std::vector<std::string> read, written;
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      if (accesses[i].written) written.push_back(name_of(call.arguments[i]));
      if (accesses[i].read || !call.arguments[i]) read.push_back(name_of(call.arguments[i]));
    }
    for (const Attribute& attribute : call.attributes)
      read.push_back(fmt::format("{}={:g}", attribute.name, attribute.value));
    text.line("{} = {}({})", fmt::join(written, ", "), call.kernel, fmt::join(read, ", "));
  }
  return text.take();
}

// The micro-step of a phase ("": the first) on the cuda backend's planning device, without GPU or data: as the model is written where
// run.fused_kernels is off, else as the passes leave it. A line per call: "%2, %3 = kernel(%1, NAME[offset], -, scale=1)", scratch
// values numbered as they appear: equal graphs have equal listings. Throws Error.
std::string list_micro_step(LoadedConfig& loaded, PluginHost& host, const std::string& name) {
  const StepRehearsal rehearsal(loaded, host, 1, 0);
  const std::size_t phase = chosen_phase(rehearsal.config(), name);
  const Graph& graph = rehearsal.micro_step(phase).graph();
  return fmt::format("# micro-step of phase '{}', {}: {} calls\n{}\n", rehearsal.config().phases[phase].name,
                     loaded.config.run.fused_kernels ? "after the passes" : "as the model is written",
                     graph.calls().size(), list_calls(graph, rehearsal.access()));
}

void run(ProfileArguments& arguments) {
  require_one_process("profile");
  PluginHost host = arguments.run.plugin_host();
  LoadedConfig loaded = load_config(arguments.run.config, arguments.run.overrides);
  if (arguments.graph) {
    LoadedConfig plain = load_config(arguments.run.config, arguments.run.overrides);
    plain.config.run.fused_kernels = false;
    fmt::print("{}{}", list_micro_step(plain, host, arguments.profile.phase),
               list_micro_step(loaded, host, arguments.profile.phase));
    return;
  }
  if (arguments.predict) {
    arguments.prediction.card = find_card(arguments.card);
    arguments.prediction.profile = arguments.profile;
    const std::vector<PredictedPhase> phases = predict_step(loaded, host, arguments.prediction);
    const std::int64_t tokens = loaded.config.train.tokens_per_step;
    fmt::print("{}", arguments.json ? prediction_json(phases, arguments.prediction, tokens)
                                    : format_prediction(phases, arguments.prediction, tokens));
    return;
  }
  const Profile profile = profile_step(loaded, host, arguments.profile);
  fmt::print("{}", arguments.json ? profile_json(profile) : format_profile(profile));
}

}  // namespace

void add_profile_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("profile", "Times one training step kernel by kernel");
  auto arguments = std::make_shared<ProfileArguments>();
  command->add_option("config", arguments->run.config, "Configuration (TOML)")->required()->type_name("FILE");
  arguments->run.declare(*command);
  CLI::Option* steps =
      command->add_option("--steps", arguments->profile.steps, "Steps that are timed; the median counts")
          ->check(CLI::Range(1, 1'000'000))
          ->capture_default_str();
  command->add_flag("--shapes", arguments->profile.by_shape,
                    "Print a row per kernel and shapes of its arguments");
  command->add_option("--phase", arguments->profile.phase, "Name of the phase; without it the first")
      ->type_name("NAME");
  command->add_flag("--json", arguments->json, "Print JSON");
  CLI::Option* predict = command
                             ->add_flag("--predict", arguments->predict,
                                        "Predict the step on a GPU by arithmetic; needs neither GPU nor data")
                             ->excludes(steps);
  command
      ->add_flag(
          "--graph", arguments->graph,
          "Print the calls of a micro-step as the model is written, and after the passes that fuse them")
      ->excludes(predict);
  command->add_option("--card", arguments->card, "The GPU of the prediction: " + card_names())
      ->needs(predict)
      ->type_name("NAME")
      ->capture_default_str();
  command
      ->add_option("--ranks", arguments->prediction.ranks,
                   "Ranks that share the predicted step; the prediction is for one rank")
      ->needs(predict)
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--document-tokens", arguments->prediction.document_tokens,
                   "Mean document length, weighted by tokens; without it whole segments")
      ->needs(predict)
      ->check(CLI::Range(1, 1'000'000'000));
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
