#include "tools/commands/sweep_steps.h"

#include <filesystem>

#include "framework/run/weight_origin.h"
#include "framework/run/weights.h"
#include "framework/train/train.h"
#include "framework/ttt/ttt_session.h"
#include "tools/commands/own_command.h"

namespace mulligan {
namespace {

SweepCell cell_of(const TttResult& result) {
  SweepCell cell;
  if (result.without) cell.without = *result.without;
  cell.with = result.with;
  cell.collapsed = result.report.collapsed_at >= 0;
  for (const TttBatchReport& batch : result.report.batches) {
    if (!batch.adapted || batch.adapters.empty()) continue;
    cell.norm = batch.adapters.front().norm;
    cell.drift = batch.adapters.front().drift;
  }
  return cell;
}

}  // namespace

SweepSteps sweep_steps(PluginHost& host, const std::vector<MakeObserver>& observers,
                       const std::vector<std::string>& plugin_paths) {
  SweepSteps steps;
  steps.train = [&host, observers](LoadedConfig& loaded, const ConsoleOptions& console) {
    TrainOptions options;
    static_cast<ConsoleOptions&>(options) = console;
    options.overwrite = true;
    options.observers = observers;
    train(loaded, host, options);
  };
  steps.train_ranks = [plugin_paths](const std::string& config, const std::vector<std::string>& overrides,
                                     const std::filesystem::path& directory, std::int64_t ranks,
                                     const ConsoleOptions& console) {
    OwnCommand command{{"train", config, "--overwrite"},
                       plugin_paths,
                       ranks,
                       directory,
                       fmt::format("training '{}' by {} ranks: ", directory.string(), ranks),
                       directory.string() + "_ranks",
                       [&](std::string_view bytes) { show_bytes(console, bytes); }};
    for (const std::string& one : overrides) command.words.insert(command.words.end(), {"--set", one});
    if (console.quiet || console.console == nullptr) command.words.emplace_back("--quiet");
    command.run();
  };
  steps.adapt = [&host](LoadedConfig& loaded, const std::filesystem::path& weights,
                        const std::filesystem::path& directory, const ConsoleOptions& console) {
    TttOptions options;
    static_cast<ConsoleOptions&>(options) = console;
    options.resume = true;
    options.directory = directory;
    const auto load = [&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
      load_weights(weights, store, layouts);
    };
    return cell_of(run_ttt(loaded, host, origin_of_weights(weights), load, options));
  };
  return steps;
}

}  // namespace mulligan
