// RunLedger: a run's account over all its commands (train, quantize, ttt): seconds by phase, bytes by part,
// scores, and whether the budgets of [ledger] are kept. It lies in the run directory as ledger.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/eval_config.h"
#include "framework/data/text_overlap.h"
#include "framework/eval/evaluate.h"
#include "framework/report/run_directory.h"

namespace mulligan {

class RunLog;

enum class LedgerStage { train, quantize, ttt };

// What one command booked. Phases and parts are named alike in no two stages: train: setup, compile, warmup,
// train, validate (on the way), save, evaluate (at the end; evaluate_unfinished: stopped and made again);
// quantize: quantize_setup, calibrate, quantise, compress, and bytes of artifact and code_source;
// ttt: ttt_setup, ttt_plain (the same text without adapters, which the collapse detector needs), ttt.
struct LedgerEntry {
  LedgerStage stage = LedgerStage::train;
  std::vector<std::pair<std::string, double>> seconds;
  std::vector<std::pair<std::string, std::uint64_t>> bytes;
  // artifact_scored: of the file that test-time training scored, wherever it lay.
  std::vector<std::pair<std::string, EvalResult>> scores;  // "before quantisation"
  // Of what was trained or calibrated on with what is scored.
  std::optional<TextOverlap> overlap{};
};

class RunLedger {
 public:
  // The account in `directory`; empty where there is none. Throws data_error when it cannot be read.
  static RunLedger read(const std::filesystem::path& directory);

  // Books a command. What later stages had booked goes: it was about another result.
  void book(LedgerEntry entry);
  const std::vector<LedgerEntry>& entries() const { return entries_; }
  bool has(LedgerStage stage) const;
  double seconds(const std::string& phase) const;      // 0 where nothing was booked
  std::uint64_t bytes(const std::string& part) const;  // 0 where nothing was booked

  // ledger.json, with the budgets that `limits` sets.
  void write(const std::filesystem::path& directory, const LedgerConfig& limits) const;

 private:
  std::vector<LedgerEntry> entries_;  // in the order of the stages
};

// A limit that is set, against what was booked. Calibration reads training data, so its seconds count as
// training. Plain validation and test-time training are two evaluations, each within the limit; the second
// counts from the weights to the score. Bytes are those of artifact and compressed source.
struct BudgetUse {
  std::string key;   // "ledger.train_seconds"
  std::string what;  // "train + calibrate"
  double used = 0, limit = 0;
  bool kept() const { return used <= limit; }
};
std::vector<BudgetUse> budget_uses(const LedgerConfig& limits, const RunLedger& ledger);
// The budgets that are not kept, one sentence without full stop each.
std::vector<std::string> broken_limits(const LedgerConfig& limits, const RunLedger& ledger);
// With strict rules: throws run_error that names every broken budget and refuses the result as a record; also
// for an artifact whose code was not counted, where bytes are limited, and for a run that trained or
// calibrated on too much of what is scored.
void require_limits(const LedgerConfig& limits, const RunLedger& ledger);
// Books `entry` to the ledger in `directory` (empty: to a ledger of its own, kept nowhere), warns of broken
// budgets in `log` and throws as require_limits does; under strict rules also where the
// artifact is not the one that was booked. Returns the ledger.
RunLedger close_entry(LedgerEntry entry, const std::filesystem::path& directory, const LedgerConfig& limits,
                      RunLog& log);

// The table at the end of a run: val_bpb after each stage, then every budget with what it was spent on.
std::string ledger_table(const LedgerConfig& limits, const RunLedger& ledger);

}  // namespace mulligan
