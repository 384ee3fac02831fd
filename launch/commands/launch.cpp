// mulligan launch
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "framework/config/schema.h"
#include "framework/core/error.h"
#include "launch/commands/commands.h"
#include "launch/launcher/guard.h"
#include "launch/launcher/launch_plan.h"
#include "launch/parse_sentence.h"

namespace mulligan {
namespace {

struct LaunchArguments {
  LaunchOptions options;
  bool dry_run = false;
};

// What every rank would fail to start is refused before anything is made.
void require_command(const std::string& first, const CLI::App& app) {
  if (first.find('/') != std::string::npos) {
    if (::access(first.c_str(), X_OK) == 0) return;
    throw config_error("'{}' cannot be started: {}; name a program, or a command of mulligan.", first,
                       std::strerror(errno));
  }
  const std::vector<std::string> names = command_names(app);
  if (std::ranges::find(names, first) != names.end()) return;
  const std::string nearest = nearest_name(first, names);
  throw config_error("'{}' is not a command of mulligan{}; another program is named by a path, such as ./{}.",
                     first, nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest), first);
}

void run(const LaunchArguments& arguments) {
  const LaunchPlan plan = plan_launch(arguments.options);
  if (arguments.dry_run) {
    fmt::print("{}", format_launch_plan(plan));
    return;
  }
  const LaunchOutcome outcome = run_guarded([&](int guard) { return supervise(plan, guard); });
  if (outcome.code != 0) throw Error(static_cast<ExitCode>(outcome.code), outcome.sentence);
}

void declare_nodes(CLI::App& command, LaunchOptions& options) {
  command.add_option("--nnodes", options.nodes, "Machines of the run")
      ->type_name("N")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      .add_option("--nproc-per-node", options.ranks_per_node,
                  "Ranks on each machine; auto: one per visible GPU, one where there is none")
      ->type_name("P")
      ->capture_default_str();
  command.add_option("--node-rank", options.node, "Number of this machine, from 0; machine 0 leads")
      ->type_name("R")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      .add_option(
          "--rdzv-endpoint", options.endpoint,
          fmt::format("Machine 0 as the others reach it; without a port {}. Not needed for one machine",
                      kLauncherPort))
      ->type_name("HOST[:PORT]");
  command.add_option("--rdzv-id", options.run_id, "Name of the run, the same on all machines")
      ->type_name("ID");
  command.add_flag("--standalone", options.standalone, "One machine, as without --nnodes");
}

}  // namespace

void add_launch_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("launch", "Starts a command as many ranks and watches over them");
  auto arguments = std::make_shared<LaunchArguments>();
  LaunchOptions& options = arguments->options;
  declare_nodes(*command, options);
  command
      ->add_option("--max-restarts", options.restarts, "How often all ranks start again after one has failed")
      ->type_name("K")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--log-dir", options.logs,
                   "Folder for the output of all ranks, attempt_K/rank_NNNN.log; without it launch_logs/ID")
      ->type_name("FOLDER");
  command
      ->add_option("--bind", options.bind,
                   "cores: each rank has CPU cores of its own; none: all ranks share all cores")
      ->check(CLI::IsMember({"cores", "none"}))
      ->capture_default_str();
  command
      ->add_option("-t,--tee", options.tee,
                   "Streams of ranks other than 0 that are shown, too: 0 none, 1 standard output, 2 standard "
                   "error, 3 both")
      ->type_name("STREAMS")
      ->check(CLI::Range(0, 3))
      ->capture_default_str();
  command
      ->add_option("-r,--redirects", options.redirects,
                   "Streams of all ranks that go to their logs only: 0 none, 1 standard output, 2 standard "
                   "error, 3 both")
      ->type_name("STREAMS")
      ->check(CLI::Range(0, 3))
      ->capture_default_str();
  command->add_flag("--dry-run", arguments->dry_run,
                    "Print what would be started: variables and CPUs of each rank");
  command
      ->add_option(
          "command", options.command,
          "What every rank runs, after `--`: a command of mulligan with its arguments (-- train FILE), "
          "or the path of another program")
      ->required()
      ->type_name("COMMAND");
  command->callback([arguments, &app] {
    require_command(arguments->options.command.front(), app);
    run(*arguments);
  });
}

}  // namespace mulligan
