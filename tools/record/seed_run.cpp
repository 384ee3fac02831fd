#include "tools/record/seed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/run/run_ledger.h"
#include "tools/report_page/run_record.h"

namespace mulligan::record {
namespace {

namespace fs = std::filesystem;

constexpr const char* anew = "remove the run directory, and mulligan record makes the run again";

const EvalResult* score_of(const RunLedger& ledger, const char* name) {
  for (const LedgerEntry& entry : ledger.entries())
    for (const auto& [what, score] : entry.scores)
      if (what == name) return &score;
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
  for (const BudgetUse& use : uses) most = use.key == key ? std::max(most, use.used) : most;
  return most;
}

}  // namespace

const char* stage_text(SeedStage stage) {
  constexpr std::array texts = {"training", "quantisation", "test-time training", "nothing"};
  return texts[static_cast<std::size_t>(stage)];
}

SeedStage next_stage(const SeedRun& run, const std::string& config_sha256, const LedgerConfig& limits) {
  const RunFiles files{run.directory};
  if (!fs::exists(files.result())) return SeedStage::train;
  if (report::ResultValue(files.result()).text("config_sha256") != config_sha256) {
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
  const auto require = [&](bool kept, const std::string& otherwise) {
    if (!kept) throw data_error("'{}' {}; {}.", run.directory.string(), otherwise, anew);
  };
  const RunLedger ledger = RunLedger::read(run.directory);
  require_limits(limits, ledger);
  const EvalResult* score = score_of(ledger, "after test-time training");
  require(score != nullptr && score->bytes > 0 && std::isfinite(score->val_bpb),
          "has no score in bits per byte after test-time training");
  const report::ResultValue training(files.result()), adapted(files.ttt_result());
  const double scored = adapted.number("with_ttt/val_bpb", NAN);
  require(!adapted.flag("void") && std::abs(scored - score->val_bpb) <= 1e-12,
          "has another score in ttt_result.json than in its ledger");
  require(training.number("steps", 0) >= 1, "made no step of training");
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
  result.steps = static_cast<std::uint64_t>(training.required("steps"));
  const std::vector<BudgetUse> uses = budget_uses(limits, ledger);
  result.train_seconds = spent(uses, "ledger.train_seconds");
  result.eval_seconds = spent(uses, "ledger.eval_seconds");
  result.step_avg_ms = 1000 * ledger.seconds("train") / training.required("steps");
  if (const EvalResult* before = score_of(ledger, "before quantisation"))
    result.val_bpb_before = before->val_bpb;
  if (const EvalResult* plain = score_of(ledger, "after quantisation"))
    result.val_bpb_quantised = plain->val_bpb;
  result.digests = digests_in(training["data"]);
  for (const auto& [what, sum] : scored_data(files))
    require(result.digest(what) == sum,
            "was scored by test-time training on another " + what + " than by training");
  result.digests["artifact"] = sha256_hex_of_file(files.artifact());
  result.digests["config"] = training.text("config_sha256");
  require(settings_digest(read_file(files.config())) == result.digests["config"],
          "has other settings in config.toml than it was trained with");
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
  const std::vector<LedgerEntry> stages = RunLedger::read(files.directory).entries();
  return !stages.empty() && stages.front().overlap ? stages.front().overlap->text() : "";
}

}  // namespace mulligan::record
