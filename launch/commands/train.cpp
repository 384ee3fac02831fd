// mulligan train
#include "framework/train/train.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/stop_request.h"
#include "framework/cost/dry_run.h"
#include "framework/cost/scaling.h"
#include "framework/run/run_ranks.h"
#include "framework/ttt/ttt_memory.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "launch/commands/run_results.h"

namespace mulligan {
namespace {

struct TrainArguments {
  RunOptions run;
  TrainOptions train;
  bool dry_run = false;
  std::string card = known_cards().front().name;
  int ranks = 1;
  int nodes = 0, gpus_per_node = 8;  // 0: scaling over nodes is not asked for
  double link_gbps = 0;
  int links_per_node = 1;
  std::string launcher;
};

LoadedConfig load_with_micro_batches(const RunOptions& options, std::int64_t micro_batches) {
  std::vector<std::string> overrides = options.overrides;
  overrides.push_back(fmt::format("train.micro_batches={}", micro_batches));
  return load_config(options.config, overrides);
}

// How the step scales over nodes, behind the plan of one rank of them.
void print_scaling(const TrainArguments& arguments, PluginHost& host, std::int64_t micro_batches) {
  const auto load = [&](std::int64_t wanted) { return load_with_micro_batches(arguments.run, wanted); };
  const ScalingOptions options{find_card(arguments.card), arguments.nodes, arguments.gpus_per_node,
                               arguments.link_gbps * 1e9 / 8, arguments.links_per_node};
  fmt::print("\n{}", format_scaling(predict_scaling(load, micro_batches, host, options)));
}

void print_plan(const TrainArguments& arguments) {
  if (arguments.nodes > 1 && arguments.link_gbps == 0) {
    throw config_error(
        "--nodes {} says nothing of the link between nodes; add --link-gbps GIGABITS_PER_SECOND.",
        arguments.nodes);
  }
  PluginHost host = arguments.run.plugin_host();
  LoadedConfig loaded = load_config(arguments.run.config, arguments.run.overrides);
  const std::int64_t configured = loaded.config.train.micro_batches;
  int ranks = arguments.ranks;
  if (arguments.nodes > 0) {
    ranks = arguments.nodes * arguments.gpus_per_node;
    loaded = load_with_micro_batches(arguments.run, micro_batches_for(configured, ranks));
  }
  fmt::print("{}", format_dry_run(dry_run(loaded, host, {find_card(arguments.card), ranks})));
  if (arguments.nodes > 0) print_scaling(arguments, host, configured);
  if (!loaded.config.ttt) return;
  fmt::print("\n{}", format_ttt_memory(plan_ttt_memory(loaded, host)));
  if (const auto measurements = ttt_product_measurements(loaded, host)) {
    fmt::print(
        "on a GPU its products take their algorithms from {} measurements, which the ranks of a machine "
        "share\n",
        *measurements);
  }
}

// Of several ranks each makes one micro-batch of a step, where the configuration says nothing else.
LoadedConfig load_for(RunRanks& ranks, const RunOptions& options) {
  LoadedConfig loaded = load_config(options.config, options.overrides);
  const bool said = loaded.core.at("train.micro_batches").origin.kind != Origin::Kind::defaulted;
  if (ranks.alone() || said) return loaded;
  return load_with_micro_batches(options, ranks.group().world_size());
}

void run(const TrainArguments& arguments) {
  if (arguments.dry_run) return print_plan(arguments);
  const StopSignals signals;
  RunRanks ranks(arguments.launcher, [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  TrainOptions options = arguments.train;
  if (!ranks.first()) options.console = nullptr;
  std::string directory;  // once it is known
  const auto report = [&] {
    if (ranks.first() && !directory.empty()) refresh_report(directory, options);
  };
  try {
    ranks.run([&] {
      PluginHost host = arguments.run.plugin_host();
      LoadedConfig loaded = load_for(ranks, arguments.run);
      directory = loaded.config.run.directory;
      train(loaded, host, options, ranks);
    });
  } catch (const Error& error) {
    // A run that failed or was stopped has a story, too; one that was refused has not begun.
    if (error.code() != ExitCode::bad_configuration && error.code() != ExitCode::bad_data) report();
    throw;
  }
  report();
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Trains and scores as a configuration says");
  auto arguments = std::make_shared<TrainArguments>();
  command->add_option("config", arguments->run.config, "Configuration (TOML)")->required()->type_name("FILE");
  arguments->run.declare(*command);
  command->add_flag("--overwrite", arguments->train.overwrite, "Replace a finished run in the run directory");
  command
      ->add_option("--resume", arguments->train.resume,
                   "Continue from the run's newest checkpoint, or from PATH, a checkpoint or a run directory")
      ->expected(0, 1)
      ->default_str("auto")
      ->type_name("PATH");
  command->add_flag("--force", arguments->train.force,
                    "Start although a check of the doctor fails (doctor.level); the result says so");
  CLI::Option* dry_run =
      command->add_flag("--dry-run", arguments->dry_run,
                        "Print parameters, memory, FLOPs and bytes per step; needs neither data nor device");
  command->add_option("--card", arguments->card, "Device of the dry run's roofline estimate: " + card_names())
      ->needs(dry_run)
      ->type_name("NAME")
      ->capture_default_str();
  CLI::Option* ranks =
      command
          ->add_option("--ranks", arguments->ranks, "Ranks of the dry run; memory and cost are those of one")
          ->needs(dry_run)
          ->check(CLI::Range(1, 1'000'000))
          ->capture_default_str();
  CLI::Option* nodes = command
                           ->add_option("--nodes", arguments->nodes,
                                        "Nodes of the dry run, which then predicts steps on 1 to that many, "
                                        "and what a further one gains")
                           ->needs(dry_run)
                           ->excludes(ranks)
                           ->check(CLI::Range(1, 1024));
  command
      ->add_option("--gpus-per-node", arguments->gpus_per_node,
                   "GPUs of each node of the dry run, a rank on each")
      ->needs(nodes)
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      ->add_option("--link-gbps", arguments->link_gbps,
                   "Gigabits per second of each link between a node and the others, in one direction")
      ->needs(nodes)
      ->check(CLI::Range(0.001, 1e6));
  command
      ->add_option("--links-per-node", arguments->links_per_node,
                   "Links (network cards) of each node to the others, which share what leaves it")
      ->needs(nodes)
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  declare_launcher(*command, arguments->launcher);
  declare_quiet(*command, arguments->train);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
