// mulligan sweep
#include "tools/sweep/sweep.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "launch/program_parts.h"

namespace mulligan {
namespace {

struct SweepArguments {
  RunOptions run;
  ConsoleOptions console;
};

void print_tables(const Sweep& sweep, const SweepResult& result) {
  fmt::print("\n{}\n{}", sweep_table(sweep, result), stats::study_text(sweep_study(sweep, result)));
  if (sweep.costs) fmt::print("\n{}", cost_table(sweep, result));
}

void run(const SweepArguments& arguments) {
  require_one_process("sweep");
  const Sweep sweep = read_sweep(arguments.run.config);
  PluginHost host = arguments.run.plugin_host();
  const SweepTraining training{program_parts().training_observers(false), arguments.run.plugin_paths};
  std::vector<LadderRung> rungs;
  for (LadderRung& length : ladder_lengths(sweep, arguments.run.overrides)) {
    LadderRung& rung = rungs.emplace_back(std::move(length));
    rung.result = run_sweep(rung.sweep, arguments.run.overrides, host, training, arguments.console);
    if (!sweep.ladder.empty()) fmt::print("\n{} steps:\n", rung.steps);
    print_tables(rung.sweep, rung.result);
  }
  if (const std::string table = ladder_table(rungs); !table.empty()) fmt::print("\n{}", table);
  fmt::print("{}", short_runs_text(rungs.back().steps, sweep.target_steps));
}

}  // namespace

void add_sweep_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("sweep", "Trains and scores variants of a configuration over several seeds");
  auto arguments = std::make_shared<SweepArguments>();
  command->add_option("sweep", arguments->run.config, "Sweep (TOML): config, directory, seeds and [[rows]]")
      ->required()
      ->type_name("FILE");
  arguments->run.declare(*command);
  declare_quiet(*command, arguments->console);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
