#include "tools/commands/record_stages.h"

#include <fmt/ranges.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/core/child_process.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "framework/core/shell.h"
#include "framework/core/stop_request.h"
#include "framework/report/machine.h"
#include "framework/report/run_directory.h"
#include "launch/built_from.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;
using record::SeedRun;
using record::SeedStage;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// A stage's lines: into the seed's log, and on the console; what it says last on standard error is kept.
class StageOutput {
 public:
  StageOutput(const fs::path& log, const ConsoleOptions& console)
      : path_(log),
        file_(open_own_file(log, FileStart::append)),
        console_(console.quiet ? nullptr : console.console) {}

  void line(const std::string& text) { take(text + "\n"); }
  void take(std::string_view bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size() ||
        std::fflush(file_.get()) != 0)
      throw run_error("cannot write to '{}'; free space there and start the record again.", path_.string());
    if (console_ == nullptr) return;
    std::fwrite(bytes.data(), 1, bytes.size(), console_);
    std::fflush(console_);
  }
  void take_error(std::string_view bytes) {
    errors_.append(bytes);
    take(bytes);
  }
  // The sentence that the command ended with, without "mulligan: "; empty where it said none.
  std::string sentence() const {
    constexpr std::string_view prefix = "mulligan: ";
    const std::size_t last = errors_.rfind("\n" + std::string(prefix));
    const std::size_t at = last != std::string::npos     ? last + 1
                           : errors_.starts_with(prefix) ? 0
                                                         : std::string::npos;
    if (at == std::string::npos) return {};
    const std::string text = errors_.substr(at + prefix.size());
    return text.substr(0, text.find('\n'));
  }

 private:
  fs::path path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::FILE* console_;
  std::string errors_;
};

// The command of a stage, without the launcher.
std::vector<std::string> stage_command(const RecordStages& stages, SeedStage stage, const SeedRun& run) {
  const RunFiles files{run.directory};
  std::vector<std::string> command;
  if (stage == SeedStage::train) {
    command = {"train", stages.run.config, "--resume"};
    std::vector<SettingsFrom> settings = stages.settings(run);
    settings.insert(settings.begin(), {Origin::command_line(), stages.run.overrides});
    for (const SettingsFrom& some : settings) {
      for (const std::string& setting : some.settings) command.insert(command.end(), {"--set", setting});
    }
  } else if (stage == SeedStage::quantize) {
    command = {"quantize", run.directory.string(), "--source", stages.source};
  } else {
    command = {"ttt", files.artifact().string(), "--output", run.directory.string()};
    if (stages.ranks == 1) command.emplace_back("--resume");  // several ranks keep no state
    for (const std::string& override : stages.score_overrides)
      command.insert(command.end(), {"--set", override});
  }
  for (const std::string& path : stages.run.plugin_paths)
    command.insert(command.end(), {"--plugin-path", path});
  return command;
}

std::vector<std::string> whole_command(const RecordStages& stages, SeedStage stage, const SeedRun& run) {
  std::vector<std::string> whole = {fs::read_symlink("/proc/self/exe").string()};
  if (stages.ranks > 1 && stage != SeedStage::quantize) {
    whole.insert(whole.end(), {"launch", "--standalone", "--nproc-per-node", std::to_string(stages.ranks),
                               "--max-restarts", "0", "--log-dir", run.directory.string() + "_ranks", "--"});
  }
  const std::vector<std::string> command = stage_command(stages, stage, run);
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

}  // namespace

fs::path folder_path(const std::string& path) {
  const fs::path whole = fs::path(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

void set_micro_batches(RunOptions& run, int ranks) {
  if (ranks == 1) return;
  const LoadedConfig loaded = load_run_config(run.config, run.overrides);
  if (loaded.core.at("train.micro_batches").origin.kind == Origin::Kind::defaulted)
    run.more.push_back(for_ranks(ranks));
}

fs::path folder_of_runs(const RunOptions& run, const std::string& named) {
  if (!named.empty()) return folder_path(named);
  const LoadedConfig loaded = load_run_config(run.config, run.overrides);
  return folder_path(folder_path(loaded.config.run.directory).string() + "_record");
}

std::vector<SeedRun> seed_runs(const fs::path& folder, const std::vector<std::int64_t>& seeds) {
  std::vector<SeedRun> runs;
  for (const std::int64_t seed : seeds) {
    runs.push_back(
        {seed, folder / fmt::format("seed_{}", seed), folder / fmt::format("train_seed{}.log", seed)});
  }
  return runs;
}

void require_one_program(const fs::path& folder) {
  const fs::path state = folder / "record.json";
  if (!fs::exists(state)) {
    write_file_atomically(state, nlohmann::json::object({{"source_sha256", built_from()}}).dump(1) + "\n");
    return;
  }
  const auto begun_by = read_json_object<nlohmann::json>(
      state, [](const auto& json) { return json.at("source_sha256").template get<std::string>(); },
      "remove the folder, and the record starts anew");
  if (begun_by != built_from()) {
    throw config_error(
        "'{}' was begun by a program built from other source; go "
        "on with that one, or remove the folder and start anew.",
        folder.string());
  }
}

std::vector<SettingsFrom> RecordStages::settings(const SeedRun& seed) const {
  std::vector<SettingsFrom> all = run.more;
  SettingsFrom& own = all.emplace_back(of_option("mulligan record"), std::vector<std::string>());
  if (strict) own.settings.emplace_back("ledger.rules=strict");
  own.settings.push_back(fmt::format("run.seed={}", seed.seed));
  own.settings.push_back("run.directory=" + seed.directory.string());
  return all;
}

LoadedConfig RecordStages::load(const SeedRun& seed) const {
  return load_run_config(run.config, run.overrides, settings(seed));
}

void RecordStages::make(SeedStage stage, const SeedRun& run) const {
  throw_if_stopping();
  const std::vector<std::string> command = whole_command(*this, stage, run);
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(shell_quoted(word));
  StageOutput output(run.log, console);
  output.line(fmt::format("== seed {}, {}: {}", run.seed, record::stage_text(stage), fmt::join(words, " ")));
  const int status = run_program(command, {[&](std::string_view bytes) { output.take(bytes); },
                                           [&](std::string_view bytes) { output.take_error(bytes); },
                                           [] { return stop_signal() != 0 ? SIGTERM : 0; }});
  if (status == 0) return;
  const std::string where = fmt::format("seed {}, {}", run.seed, record::stage_text(stage));
  if (status < 0) throw run_error("{}: the program '{}' could not be started.", where, command.front());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (stop_signal() != 0 || code == static_cast<int>(ExitCode::interrupted)) {
    throw Error(
        ExitCode::interrupted,
        fmt::format("{}: stopped; the same command goes on where it was ('{}').", where, run.log.string()));
  }
  if (code == 0)
    throw run_error("{}: ended by {}; see '{}'.", where, signal_name(WTERMSIG(status)), run.log.string());
  std::string sentence = output.sentence();
  if (sentence.empty()) sentence = fmt::format("ended with exit code {}; see '{}'.", code, run.log.string());
  throw Error(static_cast<ExitCode>(code), fmt::format("{}: {}", where, sentence));
}

}  // namespace mulligan
