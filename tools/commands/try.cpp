// mulligan try
#include "tools/try/try.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/directory_lock.h"
#include "framework/core/file.h"
#include "framework/core/stop_request.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct TryArguments {
  RunOptions run;
  tries::Request request;
  ConsoleOptions console;
  std::string log = "runs/tries";
  bool list = false, page = false, json = false;
};

void show(const TryArguments& arguments, const tries::Memory& memory) {
  const std::string page = arguments.page ? (memory.log() / "tries.html").string() : "";
  if (arguments.page) write_file_atomically(page, tries::tries_page(memory));
  const double chance = tries::expected_false_keeps(memory.tries());
  const tries::Json all = {{"tries", memory.tries()}, {"expected_false_keeps", chance}, {"page", page}};
  if (arguments.json) return fmt::print("{}\n", all.dump(1));
  if (arguments.list) fmt::print("{}", tries::list_text(memory.tries()));
  if (arguments.page) fmt::print("{}\n", page);
}

void run(TryArguments arguments) {
  require_one_process("try");
  // Absolute, so that the runs are found again from any folder.
  const fs::path folder = fs::weakly_canonical(fs::absolute(arguments.log));
  if (arguments.list || arguments.page) return show(arguments, tries::Memory(folder));
  if (arguments.run.config.empty() || arguments.request.base.empty())
    throw config_error("name both: mulligan try VARIANT.toml --base BASE.toml; or ask for --list or --page.");
  arguments.request.variant = arguments.run.config;
  arguments.request.overrides = arguments.run.overrides;
  arguments.request.plugin_paths = arguments.run.plugin_paths;
  if (arguments.json) arguments.console = {nullptr, true};
  const StopSignals signals;
  const DirectoryLock lock(folder, "try");
  tries::Memory memory(folder);
  PluginHost host = arguments.run.plugin_host();
  const tries::Result result = run_try(arguments.request, memory, host, arguments.console);
  tries::Json record = result.record;
  record["repeated"] = result.repeated;
  const std::string status = record.at("status");
  if (arguments.json) fmt::print("{}\n", record.dump(1));
  if (result.repeated && !arguments.json)
    fmt::print("{} was tried before, and nothing was run; --again tries it anew on other seeds.\n",
               record.at("id").get<std::string>());
  if (!arguments.json) fmt::print("{}", tries::result_lines(record));
  if (status == "crash") throw Error(result.crash, record.at("why"));
  if (status != "keep") throw Error(static_cast<ExitCode>(status == "discard" ? 10 : 11), "");
}

}  // namespace

void add_try_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "try", "Tries one change of a configuration against its base: keep, discard or undecided");
  auto arguments = std::make_shared<TryArguments>();
  tries::Request& request = arguments->request;
  command->add_option("variant", arguments->run.config, "Configuration (TOML) that is tried");
  command->add_option("--base", request.base, "Configuration that it is compared with");
  command
      ->add_option("--pairs", request.pairs,
                   "Number of pairs to train, base and variant in turn; without it the variant alone, on the "
                   "three seeds of the kept baseline. After 'undecided' it adds pairs")
      ->check(CLI::Range(3, 1000));
  command->add_option("--note", request.note, "Description of the change, in one line");
  command->add_option("--log", arguments->log, "Folder that remembers all tries")->capture_default_str();
  command
      ->add_option("--also", request.also, "Key that the variant may change although it must be the base's")
      ->allow_extra_args(false);
  command->add_flag("--again", request.again,
                    "Repeat an earlier try on other seeds; also after a change of data, program or machine");
  command->add_flag("--list", arguments->list, "Print all tries, the best first");
  command->add_flag("--page", arguments->page, "Draw all tries as LOG/tries.html");
  command->add_flag("--json", arguments->json, "Print JSON");
  arguments->run.declare(*command);
  declare_quiet(*command, arguments->console);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
