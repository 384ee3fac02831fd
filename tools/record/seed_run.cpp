#include "tools/record/seed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/config/resolved_settings.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "framework/data/text_overlap.h"
#include "framework/run/run_ledger.h"
#include "tools/report_page/run_record.h"

namespace mulligan::record {
namespace {

namespace fs = std::filesystem;

constexpr const char* anew = "remove the run directory, and mulligan record makes the run again";

const EvalResult* score_of(const RunLedger& ledger, const char* name) {
  for (const LedgerEntry& entry : ledger.entries()) {
    for (const auto& [what, score] : entry.scores) {
      if (what == name) return &score;
    }
  }
  return nullptr;
}

// Digests of the data that a result file names; "" where it does not.
Digests digests_in(const report::ResultValue& data) {
  return {{"train", data.text("train/sha256")},
          {"validation", data.text("validation/sha256")},
          {"tokenizer", data.text("tokenizer_sha256")}};
}

// Against one limit; the largest where several uses count against it.
double spent(const std::vector<BudgetUse>& uses, const char* key) {
  double most = 0;
  for (const BudgetUse& use : uses) {
    if (use.key == key) most = std::max(most, use.used);
  }
  return most;
}

// Digest of the settings that a run was trained with.
std::string trained_settings(const RunFiles& files) {
  return report::ResultValue(files.result()).text("config_sha256");
}

}  // namespace

const char* stage_text(SeedStage stage) {
  switch (stage) {
    case SeedStage::train:
      return "training";
    case SeedStage::quantize:
      return "quantisation";
    case SeedStage::adapt:
      return "test-time training";
    case SeedStage::done:
      break;
  }
  return "nothing";
}

SeedStage next_stage(const SeedRun& run, const std::string& config_sha256, const LedgerConfig& limits) {
  const RunFiles files{run.directory};
  if (!fs::exists(files.result())) return SeedStage::train;
  if (trained_settings(files) != config_sha256) {
    throw config_error(
        "'{}' holds a run of other settings than seed {} of this record "
        "has; remove it, or name another folder for the runs with --runs.",
        run.directory.string(), run.seed);
  }
  const RunLedger ledger = RunLedger::read(run.directory);
  require_limits(limits, ledger);
  if (!ledger.has(LedgerStage::train)) return SeedStage::train;
  const bool quantised = ledger.has(LedgerStage::quantize) && fs::exists(files.quantize_result()) &&
                         fs::exists(files.artifact()) &&
                         fs::file_size(files.artifact()) == ledger.bytes("artifact");
  if (!quantised) return SeedStage::quantize;
  return ledger.has(LedgerStage::ttt) && fs::exists(files.ttt_result()) ? SeedStage::done : SeedStage::adapt;
}

SeedResult seed_result(const SeedRun& run, const LedgerConfig& limits) {
  const RunFiles files{run.directory};
  const auto refuse = [&](const std::string& what) {
    return data_error("'{}' {}; {}.", run.directory.string(), what, anew);
  };
  const RunLedger ledger = RunLedger::read(run.directory);
  require_limits(limits, ledger);
  const EvalResult* score = score_of(ledger, "after test-time training");
  if (score == nullptr || score->bytes == 0 || !std::isfinite(score->val_bpb))
    throw refuse("has no score in bits per byte after test-time training");
  const report::ResultValue training(files.result()), adapted(files.ttt_result());
  const auto scored = adapted.number("with_ttt/val_bpb"), steps = training.number("steps");
  if (adapted.flag("void") || !scored || std::abs(*scored - score->val_bpb) > 1e-12)
    throw refuse("has another score in ttt_result.json than in its ledger");
  SeedResult result;
  result.seed = run.seed;
  result.val_loss = score->val_loss_nats;
  result.val_bpb = score->val_bpb;
  result.tokens = score->tokens;
  result.bytes = score->bytes;
  result.byte_rule = score->byte_rule;
  result.model_bytes = ledger.bytes("artifact");
  result.code_bytes = ledger.bytes("code_source");
  result.artifact_bytes = *result.model_bytes + *result.code_bytes;
  if (!steps || *steps < 1) throw refuse("made no step of training");
  result.steps = static_cast<std::uint64_t>(*steps);
  const std::vector<BudgetUse> uses = budget_uses(limits, ledger);
  result.train_seconds = spent(uses, "ledger.train_seconds");
  result.eval_seconds = spent(uses, "ledger.eval_seconds");
  result.step_avg_ms = 1000 * ledger.seconds("train") / static_cast<double>(*result.steps);
  if (const EvalResult* before = score_of(ledger, "before quantisation"))
    result.val_bpb_before = before->val_bpb;
  if (const EvalResult* plain = score_of(ledger, "after quantisation"))
    result.val_bpb_quantised = plain->val_bpb;
  result.digests = digests_in(training["data"]);
  // Test-time training must have had the same.
  for (const auto& [what, sum] : scored_data(files)) {
    if (result.digests.at(what) != sum)
      throw refuse("was scored by test-time training on another " + what + " than by training");
  }
  result.digests["artifact"] = sha256_hex_of_file(files.artifact());
  result.digests["config"] = trained_settings(files);
  if (settings_digest(read_file(files.config())) != result.digests["config"])
    throw refuse("has other settings in config.toml than it was trained with");
  result.log = fmt::format("train_seed{}.log", run.seed);
  return result;
}

Digests scored_data(const RunFiles& files) {
  Digests found = digests_in(report::ResultValue(files.ttt_result())["data"]);
  found.erase("train");
  return found;
}

std::string scoring_environment(const RunFiles& files) {
  const report::ResultValue result(files.ttt_result());
  return fmt::format("{}, {}, {} ranks of {} lanes", result.text("device"), result.text("instructions"),
                     result.required("ranks"), result.required("lanes"));
}

std::string stated_overlap(const RunFiles& files) {
  const auto text = [](const nlohmann::ordered_json& json) {
    const auto& data = json.at("data");
    return data.contains("overlap") ? text_overlap_from_json(data.at("overlap")).text() : std::string();
  };
  return read_json_object<nlohmann::ordered_json>(files.result(), text, anew);
}

}  // namespace mulligan::record
