#include "tools/commands/sweep_steps.h"

#include <sys/wait.h>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "framework/core/child_process.h"
#include "framework/core/error.h"
#include "framework/core/stop_request.h"
#include "framework/run/weight_origin.h"
#include "framework/run/weights.h"
#include "framework/train/train.h"
#include "framework/ttt/ttt_session.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> launch_command(const RankTraining& training,
                                        const std::vector<std::string>& plugin_paths, bool quiet) {
  std::vector<std::string> command = {fs::read_symlink("/proc/self/exe").string(),
                                      "launch",
                                      "--standalone",
                                      "--nproc-per-node",
                                      std::to_string(training.ranks),
                                      "--max-restarts",
                                      "0",
                                      "--log-dir",
                                      training.directory.string() + "_ranks",
                                      "--",
                                      "train",
                                      training.config,
                                      "--overwrite"};
  for (const std::string& override : training.overrides) command.insert(command.end(), {"--set", override});
  for (const std::string& path : plugin_paths) command.insert(command.end(), {"--plugin-path", path});
  if (quiet) command.emplace_back("--quiet");
  return command;
}

}  // namespace

void train_by_ranks(const RankTraining& training, const std::vector<std::string>& plugin_paths,
                    const ConsoleOptions& console) {
  throw_if_stopping();
  std::string errors;
  const auto show = [&](std::string_view bytes) {
    if (console.console == nullptr) return;
    std::fwrite(bytes.data(), 1, bytes.size(), console.console);
    std::fflush(console.console);
  };
  const int status =
      run_program(launch_command(training, plugin_paths, console.quiet || console.console == nullptr),
                  {show,
                   [&](std::string_view bytes) {
                     errors.append(bytes);
                     show(bytes);
                   },
                   [] { return stop_signal() != 0 ? SIGTERM : 0; }});
  if (status == 0) return;
  const std::string what =
      fmt::format("training '{}' by {} ranks", training.directory.string(), training.ranks);
  const std::string logs = training.directory.string() + "_ranks";
  if (status < 0) throw run_error("{}: the launcher could not be started.", what);
  if (stop_signal() != 0)
    throw Error(ExitCode::interrupted, fmt::format("{} was stopped; the same command makes it anew.", what));
  if (!WIFEXITED(status))
    throw run_error("{} was ended by {}; see '{}'.", what, signal_name(WTERMSIG(status)), logs);
  throw Error(static_cast<ExitCode>(WEXITSTATUS(status)),
              fmt::format("{} failed with exit code {}; see '{}'.", what, WEXITSTATUS(status), logs));
}

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

StoreVectors& vector_store() {
  static StoreVectors store;
  return store;
}

SweepSteps sweep_steps(PluginHost& host, const SweepParts& parts) {
  SweepSteps steps;
  steps.train = [&host, observers = parts.observers](LoadedConfig& loaded, const ConsoleOptions& console) {
    TrainOptions options;
    static_cast<ConsoleOptions&>(options) = console;
    options.overwrite = true;
    options.observers = observers;
    train(loaded, host, options);
  };
  steps.train_ranks = [plugin_paths = parts.plugin_paths](const RankTraining& training,
                                                          const ConsoleOptions& console) {
    train_by_ranks(training, plugin_paths, console);
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
  steps.store_vectors = parts.store_vectors;
  return steps;
}

}  // namespace mulligan
