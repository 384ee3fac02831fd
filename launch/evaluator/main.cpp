// mulligan_evaluate: scores an artifact, and nothing else. Its source is what a budget of bytes counts as
// code (docs/artifact.md).
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "framework/artifact/artifact_model.h"
#include "framework/artifact/artifact_run.h"
#include "framework/core/alternate_stack.h"
#include "framework/core/error.h"
#include "framework/core/standard_streams.h"
#include "framework/core/stop_request.h"
#include "framework/run/evaluate_loaded.h"
#include "framework/run/run_ranks.h"
#include "framework/ttt/ttt_session.h"

namespace mulligan {
namespace {

constexpr std::string_view usage =
    "usage: mulligan_evaluate ARTIFACT [--plain] [--output FOLDER] [--plugin-path PATH]... [--set "
    "KEY=VALUE]...\n"
    "Scores an artifact as its configuration says: with test-time training where it has a [ttt], with "
    "--plain without.\n";

struct Arguments {
  std::string artifact, output;
  std::vector<std::string> plugin_paths, overrides;
  bool plain = false;
};

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool takes_value = word == "--output" || word == "--plugin-path" || word == "--set";
    if (takes_value && i + 1 == words.size()) throw config_error("{} needs a value behind it.", word);
    if (word == "--plain") {
      arguments.plain = true;
    } else if (word == "--output") {
      arguments.output = words[++i];
    } else if (word == "--plugin-path") {
      arguments.plugin_paths.push_back(words[++i]);
    } else if (word == "--set") {
      arguments.overrides.push_back(words[++i]);
    } else if (word.starts_with("--") || !arguments.artifact.empty()) {
      throw config_error("'{}' is not known; 'mulligan_evaluate --help' lists what is.", word);
    } else {
      arguments.artifact = word;
    }
  }
  if (arguments.artifact.empty()) throw config_error("an artifact must be named.");
  return arguments;
}

void evaluate(const Arguments& arguments) {
  const StopSignals signals;
  RunRanks ranks("", [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  ranks.run([&] {
    PluginHost host(plugin_places(arguments.plugin_paths));
    OpenedArtifact opened = open_artifact(arguments.artifact, arguments.overrides);
    const ModelConfig model = opened.loaded.config.model;
    const WeightLoader load = [&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
      load_artifact(opened.artifact, model, store, layouts);
    };
    TttOptions options;
    if (!ranks.first()) options.console = nullptr;
    if (arguments.plain || !opened.loaded.config.ttt) {
      evaluate_loaded(opened.loaded, host, opened.origin, load, options, {}, ranks);
      return;
    }
    if (ranks.first()) options.directory = arguments.output;
    options.quantised = true;
    run_ttt(opened.loaded, host, opened.origin, load, options, ranks);
  });
}

}  // namespace
}  // namespace mulligan

int main(int count, char** words) {
  using namespace mulligan;
  open_missing_streams();
  try {
    take_over_signals();
    const std::vector<std::string> arguments(words + 1, words + count);
    if (arguments == std::vector<std::string>{"--help"}) {
      std::fputs(usage.data(), stdout);
      return 0;
    }
    install_alternate_stack();
    evaluate(parse(arguments));
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "mulligan_evaluate: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "mulligan_evaluate: {}\n", error.what());
    return static_cast<int>(ExitCode::run_failed);
  }
}
