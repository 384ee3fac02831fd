// mulligan plugins kernels
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/temporary_path.h"
#include "launch/commands/commands.h"
#include "launch/commands/kernel_programs.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

struct KernelArguments {
  RunOptions run;
  std::vector<std::string> configs;
  std::string architecture = "sm_90a", out;
  std::vector<int> ranks;
};

// One rank, and as many as there are micro-batches: an optimiser's step on a share of a tensor may be another
// function than on the whole of it.
std::vector<int> ranks_of(const KernelArguments& arguments, const RunConfig& config) {
  if (!arguments.ranks.empty()) return arguments.ranks;
  std::vector<int> ranks = {1};
  if (config.train.micro_batches > 1) ranks.push_back(static_cast<int>(config.train.micro_batches));
  return ranks;
}

// Adds the kernels of the configuration at `path` to `file`.
void compile(const KernelArguments& arguments, const std::string& path, const std::string& file,
             PluginHost& host) {
  const auto setting = [](const char* key, const std::string& value) {
    return fmt::format("backend.{}={}", key, toml_quoted(value));
  };
  const std::vector<SettingsFrom> more{
      {Origin::command_line("--architecture"), {setting("architecture", arguments.architecture)}},
      {Origin::command_line("--out"),
       {setting("kernel_file", file), "backend.plugin=cuda", "backend.device=compile"}}};
  const LoadedConfig described = load_config(path, arguments.run.overrides, more);
  const std::int64_t micro_batches = described.config.train.micro_batches;
  const std::vector<int> all_ranks = ranks_of(arguments, described.config);
  for (const int ranks : all_ranks) {
    if (ranks >= 1 && micro_batches % ranks == 0) continue;
    throw config_error("{}: train.micro_batches is {}, which {} ranks do not divide; choose a divisor.", path,
                       micro_batches, ranks);
  }
  const auto stage = [&](const auto& make) {
    LoadedConfig loaded = load_run_config(path, arguments.run.overrides, more);
    make(loaded);
  };
  for (const int ranks : all_ranks)
    stage([&](LoadedConfig& loaded) { make_training_programs(loaded, host, ranks); });
  stage([&](LoadedConfig& loaded) { make_scoring_programs(loaded, host); });
  if (described.config.ttt) stage([&](LoadedConfig& loaded) { make_ttt_programs(loaded, host); });
}

void run(KernelArguments& arguments) {
  require_one_process("plugins kernels");
  PluginHost host = arguments.run.plugin_host();
  // What lies at --out stays until all is compiled: it is replaced then, or not at all.
  TemporaryPath file(temporary_name(arguments.out));
  for (const std::string& config : arguments.configs) {
    compile(arguments, config, file.path().string(), host);
  }
  file.publish(arguments.out, [&] {
    std::error_code failed;
    std::filesystem::rename(file.path(), arguments.out, failed);
    if (failed) throw run_error("'{}' cannot be written: {}.", arguments.out, failed.message());
  });
  fmt::print("{}: {} bytes\n", arguments.out, std::filesystem::file_size(arguments.out));
}

}  // namespace

void add_kernels_command(CLI::App& plugins) {
  CLI::App* command = plugins.add_subcommand(
      "kernels", "Compiles CUDA kernels of configurations ahead of time, into one file");
  auto arguments = std::make_shared<KernelArguments>();
  command->add_option("configs", arguments->configs, "Configurations (TOML)")->required()->type_name("FILE");
  arguments->run.declare(*command);
  command->add_option("--architecture", arguments->architecture, "GPU architecture, such as sm_80")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--out", arguments->out, "The file to write: backend.kernel_file of runs")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--ranks", arguments->ranks,
                   "Ranks that share a step; without it one rank, and also train.micro_batches ranks")
      ->type_name("NUMBER");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
