#include "tools/commands/record_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

#include "framework/artifact/code_size.h"
#include "framework/core/error.h"
#include "framework/data/shard.h"
#include "framework/data/text_overlap.h"
#include "framework/data/tokenizer.h"
#include "launch/built_from.h"
#include "tools/record/make_submission.h"

namespace mulligan {
namespace {

void judge_stages(StrictRule& rule, const LoadedConfig& loaded) {
  rule.value = "training, quantisation, test-time training";
  if (loaded.config.arena.track != ArenaTrack::none) {
    throw config_error(
        "{}: a result of arena.track is its runs and has no artifact to submit; make it with --track {}.",
        loaded.file, arena_record_track);
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
