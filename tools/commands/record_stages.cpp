#include "tools/commands/record_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>

#include "framework/artifact/code_size.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/own_file.h"
#include "framework/core/shell.h"
#include "framework/core/stop_request.h"
#include "framework/data/shard.h"
#include "framework/data/text_overlap.h"
#include "framework/data/tokenizer.h"
#include "framework/report/machine.h"
#include "framework/report/run_directory.h"
#include "launch/built_from.h"
#include "tools/record/make_submission.h"
#include "tools/sweep/own_command.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;
using record::SeedRun;
using record::SeedStage;

// The command of a stage.
std::vector<std::string> stage_command(const RecordStages& stages, SeedStage stage, const SeedRun& run) {
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
    command = {"ttt", RunFiles{run.directory}.artifact().string(), "--output", run.directory.string()};
    if (stages.ranks == 1) command.emplace_back("--resume");  // several ranks keep no state
    for (const std::string& override : stages.score_overrides)
      command.insert(command.end(), {"--set", override});
  }
  return command;
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
  const fs::path state = folder / "program.sha256";
  if (!fs::exists(state)) return write_file_atomically(state, built_from() + "\n");
  if (read_file(state, kLargestDescription) != built_from() + "\n") {
    throw config_error(
        "'{}' was begun by a program built from other source; use that program, or remove the folder and "
        "start again.",
        folder.string());
  }
}

std::vector<SettingsFrom> RecordStages::settings(const SeedRun& seed) const {
  std::vector<SettingsFrom> all = run.more;
  SettingsFrom& own = all.emplace_back(Origin::command_line("mulligan record"), std::vector<std::string>());
  own.settings.emplace_back("ledger.rules=strict");
  own.settings.push_back(fmt::format("run.seed={}", seed.seed));
  own.settings.push_back("run.directory=" + seed.directory.string());
  return all;
}

LoadedConfig RecordStages::load(const SeedRun& seed) const {
  return load_run_config(run.config, run.overrides, settings(seed));
}

void RecordStages::make(SeedStage stage, const SeedRun& seed) const {
  throw_if_stopping();
  const std::string where = fmt::format("seed {}, {}: ", seed.seed, record::stage_text(stage));
  OwnFile file(seed.log, FileStart::append);
  const auto show = [&](std::string_view bytes) {
    if (file.write(bytes) != 0)
      throw run_error("cannot write to '{}'; free space there and start the record again.",
                      seed.log.string());
    if (!console.quiet) show_bytes(console, bytes);
  };
  const OwnCommand command{stage_command(*this, stage, seed),
                           run.plugin_paths,
                           stage == SeedStage::quantize ? 1 : ranks,
                           seed.directory,
                           where,
                           seed.log.string(),
                           show};
  std::vector<std::string> words;
  for (const std::string& word : command.arguments()) words.push_back(shell_quoted(word));
  show(fmt::format("== {}{}\n", where, fmt::join(words, " ")));
  command.run();
}

namespace {

void judge_stages(StrictRule& rule, const LoadedConfig& loaded) {
  rule.value = "training, quantisation, test-time training";
  if (loaded.config.arena.track != ArenaTrack::none) {
    throw config_error(
        "{}: a result of arena.track is its runs and has no artifact to submit; train them and decide with "
        "mulligan stats arena.",
        loaded.file);
  }
  if (!loaded.config.quantize || !loaded.config.ttt) {
    throw config_error("{}: a record is quantised and scored with test-time training; add the section [{}].",
                       loaded.file, loaded.config.quantize ? "ttt" : "quantize");
  }
}

void judge_source(StrictRule& rule, const std::filesystem::path& source) {
  rule.value = "the tree that the program was built from";
  if (!std::filesystem::is_directory(source / "framework")) {
    throw data_error(
        "'{}' is not mulligan's source tree, so its code cannot be counted; name it with --source.",
        source.string());
  }
  if (source_digest(source) != built_from()) {
    throw config_error(
        "'{}' is not the source that this program was built from, so counting it says nothing about the result; "
        "name that tree with --source, or build this one.",
        source.string());
  }
}

void judge_overlap(StrictRule& rule, const DataConfig& data) {
  std::optional<Tokenizer> tokenizer;
  if (!data.tokenizer.empty()) tokenizer = Tokenizer::load(data.tokenizer);
  const TextOverlap overlap = find_text_overlap(find_shards(training_patterns(data), DataSplit::train),
                                                find_shards({data.validation}, DataSplit::validation),
                                                tokenizer ? &*tokenizer : nullptr);
  rule.of_data = true;
  rule.value = overlap.text();
  if (const std::string excess = overlap.excess(); !excess.empty())
    rule.problem = excess + "; prepare the data anew with mulligan prepare --drop-overlap";
}

}  // namespace

std::vector<StrictRule> record_rules(LoadedConfig& loaded, PluginHost& host, const std::string& track,
                                     const StrictStartOptions& start) {
  std::vector<StrictRule> rules = {
      judge_rule("stages", [&](StrictRule& rule) { judge_stages(rule, loaded); }),
      judge_rule("budgets",
                 [&](StrictRule& rule) {
                   const record::Budgets budgets = record::budgets_of(loaded.config.ledger, track);
                   rule.value =
                       fmt::format("{:g} s of training, {:g} s of evaluation, {} bytes",
                                   budgets.train_seconds, budgets.eval_seconds, budgets.artifact_bytes);
                 }),
      judge_rule("source", [&](StrictRule& rule) { judge_source(rule, start.source); }),
      judge_rule("training and validation text apart",
                 [&](StrictRule& rule) { judge_overlap(rule, loaded.config.data); }),
  };
  std::ranges::move(strict_rules_at_start(loaded, host, start), std::back_inserter(rules));
  return rules;
}

}  // namespace mulligan
