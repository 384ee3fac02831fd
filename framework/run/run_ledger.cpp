#include "framework/run/run_ledger.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_fields.h"
#include "framework/core/json_file.h"
#include "framework/report/run_log.h"
#include "framework/run/eval_json.h"
#include "framework/run/strict_rules.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* stage_names[] = {"train", "quantize", "ttt"};

template <typename T>
T booked(const std::vector<std::pair<std::string, T>>& amounts, const std::string& name) {
  const auto found = std::ranges::find(amounts, name, &std::pair<std::string, T>::first);
  return found == amounts.end() ? T{} : found->second;
}

double number(const Json& json, const char* key) {  // what is not finite was written as null
  const Json& value = json.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

LedgerEntry read_entry(const Json& json) {
  LedgerEntry entry;
  const auto stage = std::ranges::find(stage_names, json.at("stage").get<std::string>());
  if (stage == std::end(stage_names)) throw std::invalid_argument("an unknown stage");
  entry.stage = static_cast<LedgerStage>(stage - std::begin(stage_names));
  FieldReader fields(json);
  fields("seconds", entry.seconds)("bytes", entry.bytes);
  for (const auto& [phase, seconds] : entry.seconds)
    if (seconds < 0) throw std::invalid_argument(fmt::format("{} took no such time: {}", phase, seconds));
  for (const auto& [name, score] : json.at("scores").items()) {
    EvalResult& read = entry.scores.emplace_back(name, EvalResult()).second;
    read.loss_sum_nats = number(score, "loss_sum_nats");
    read.val_loss_nats = number(score, "val_loss_nats");
    read.val_bpb = number(score, "val_bpb");
    read.tokens = score.at("tokens");
    read.bytes = score.at("bytes");
    read.seconds = number(score, "seconds");
    read.masked = score.value("masked", false);
    read.data.validation.tokens = score.at("of_tokens");
    read.byte_rule = score.value("byte_rule", "");
    if (!score.contains("by_byte_rule")) continue;
    for (const auto& [rule, figures] : score.at("by_byte_rule").items())
      read.bytes_by_rule[rule] = figures.at("bytes").get<std::uint64_t>();
  }
  if (json.contains("overlap")) entry.overlap = text_overlap_from_json(json.at("overlap"));
  return entry;
}

Json entry_json(const LedgerEntry& entry) {
  Json scores = Json::object();
  for (const auto& [name, score] : entry.scores) {
    scores[name] = eval_json(score);
    scores[name]["of_tokens"] = score.data.validation.tokens;
  }
  Json json = {{"stage", stage_names[static_cast<int>(entry.stage)]},
               {"seconds", object_of(entry.seconds)},
               {"bytes", object_of(entry.bytes)},
               {"scores", scores}};
  if (entry.overlap) json["overlap"] = to_json(*entry.overlap);
  return json;
}

bool counts_bytes(const BudgetUse& use) {
  return use.key == "ledger.artifact_bytes";
}

// Booked scores that are not of their whole validation set.
void add_partial_scores(const RunLedger& ledger, std::vector<std::string>& reasons) {
  for (const LedgerEntry& entry : ledger.entries()) {
    for (const auto& [name, score] : entry.scores) {
      const std::string reason = partial_score(score);
      if (!reason.empty()) reasons.push_back(fmt::format("the score \"{}\": {}", name, reason));
    }
  }
}

std::string amount_text(const BudgetUse& use, double amount) {
  return counts_bytes(use) ? fmt::format("{:.0f} bytes", amount) : fmt::format("{:.2f} s", amount);
}

// Under strict rules a score is of the artifact that was booked, and what was trained is booked, too.
void require_booked(const RunLedger& ledger, LedgerStage stage, const std::filesystem::path& directory,
                    const LedgerConfig& limits) {
  if (limits.rules != LedgerRules::strict || directory.empty()) return;
  const RunFiles files{directory};
  const auto refuse = [&](const std::string& what) {
    return run_error("'{}' {}; under ledger.rules = \"strict\" the result is refused as a record.",
                     files.ledger().string(), what);
  };
  if (std::filesystem::exists(files.result()) && !ledger.has(LedgerStage::train))
    throw refuse("does not book the training");
  if (stage != LedgerStage::ttt || !std::filesystem::exists(files.artifact())) return;
  const std::uint64_t bytes = std::filesystem::file_size(files.artifact());
  if (ledger.bytes("artifact") != bytes) {
    throw refuse(fmt::format("books {} bytes of artifact, but '{}' has {}; make it with mulligan quantize",
                             ledger.bytes("artifact"), files.artifact().string(), bytes));
  }
}

}  // namespace

RunLedger RunLedger::read(const std::filesystem::path& directory) {
  const std::filesystem::path path = RunFiles{directory}.ledger();
  if (!std::filesystem::exists(path)) return {};
  return read_json_object<Json>(
      path,
      [](const Json& json) {
        RunLedger ledger;
        for (const Json& entry : json.at("stages")) ledger.book(read_entry(entry));
        return ledger;
      },
      "train the run again");
}

void RunLedger::book(LedgerEntry entry) {
  std::erase_if(entries_, [&](const LedgerEntry& other) { return other.stage >= entry.stage; });
  entries_.push_back(std::move(entry));
}

bool RunLedger::has(LedgerStage stage) const {
  return std::ranges::find(entries_, stage, &LedgerEntry::stage) != entries_.end();
}

double RunLedger::seconds(const std::string& phase) const {
  double sum = 0;
  for (const LedgerEntry& entry : entries_) sum += booked(entry.seconds, phase);
  return sum;
}

std::uint64_t RunLedger::bytes(const std::string& part) const {
  std::uint64_t sum = 0;
  for (const LedgerEntry& entry : entries_) sum += booked(entry.bytes, part);
  return sum;
}

void RunLedger::write(const std::filesystem::path& directory, const LedgerConfig& limits) const {
  Json budgets = Json::array(), stages = Json::array();
  for (const BudgetUse& use : budget_uses(limits, *this)) {
    budgets.push_back({{"key", use.key},
                       {"what", use.what},
                       {"used", use.used},
                       {"limit", use.limit},
                       {"kept", use.kept()}});
  }
  for (const LedgerEntry& entry : entries_) stages.push_back(entry_json(entry));
  const Json json = {{"rules", word_of(limits.rules)},
                     {"budgets", budgets},
                     {"broken", broken_limits(limits, *this)},
                     {"stages", stages}};
  write_file_atomically(RunFiles{directory}.ledger(), json.dump(2) + "\n");
}

std::vector<BudgetUse> budget_uses(const LedgerConfig& limits, const RunLedger& ledger) {
  std::vector<BudgetUse> uses;
  const auto add_seconds = [&](const char* key, double limit, const std::vector<std::string>& phases) {
    double used = 0;
    std::vector<std::string> spent;
    for (const std::string& phase : phases) {
      used += ledger.seconds(phase);
      if (ledger.seconds(phase) > 0) spent.push_back(phase);
    }
    if (limit > 0 && !spent.empty())
      uses.push_back({key, fmt::format("{}", fmt::join(spent, " + ")), used, limit});
  };
  add_seconds("ledger.train_seconds", limits.train_seconds, {"train", "calibrate"});
  add_seconds("ledger.eval_seconds", limits.eval_seconds, {"evaluate"});
  add_seconds("ledger.eval_seconds", limits.eval_seconds, {"ttt_setup", "ttt_plain", "ttt"});
  const std::uint64_t artifact = std::max(ledger.bytes("artifact"), ledger.bytes("artifact_scored"));
  if (limits.artifact_bytes > 0 && artifact > 0) {
    const std::uint64_t source = ledger.bytes("code_source");
    uses.push_back({"ledger.artifact_bytes",
                    source > 0 ? "artifact + counted source" : "artifact, code not counted",
                    static_cast<double>(artifact + source), static_cast<double>(limits.artifact_bytes)});
  }
  return uses;
}

std::vector<std::string> broken_limits(const LedgerConfig& limits, const RunLedger& ledger) {
  std::vector<std::string> broken;
  for (const BudgetUse& use : budget_uses(limits, ledger)) {
    if (use.kept()) continue;
    broken.push_back(fmt::format("{} took {}, {} more than {} = {} allows", use.what,
                                 amount_text(use, use.used), amount_text(use, use.used - use.limit), use.key,
                                 use.limit));
  }
  return broken;
}

void require_limits(const LedgerConfig& limits, const RunLedger& ledger) {
  if (limits.rules != LedgerRules::strict) return;
  std::vector<std::string> reasons = broken_limits(limits, ledger);
  const std::uint64_t made = ledger.bytes("artifact"), scored = ledger.bytes("artifact_scored");
  if (made > 0 && scored > 0 && made != scored) {
    reasons.push_back(fmt::format(
        "the artifact that was scored has {} bytes, but the one that the ledger books {}", scored, made));
  }
  if (limits.artifact_bytes > 0 && made + scored > 0 && ledger.bytes("code_source") == 0) {
    reasons.emplace_back(
        "the code next to the artifact was not counted (name the source tree with mulligan quantize "
        "--source)");
  }
  add_partial_scores(ledger, reasons);
  for (const LedgerEntry& entry : ledger.entries()) {
    if (entry.overlap && !entry.overlap->excess().empty()) {
      reasons.push_back(fmt::format("of what {} read, {}", stage_names[static_cast<int>(entry.stage)],
                                    entry.overlap->excess()));
    }
  }
  if (reasons.empty()) return;
  throw run_error("{}; under ledger.rules = \"strict\" the result is refused as a record.",
                  fmt::join(reasons, "; "));
}

RunLedger close_entry(LedgerEntry entry, const std::filesystem::path& directory, const LedgerConfig& limits,
                      RunLog& log) {
  RunLedger ledger = directory.empty() ? RunLedger() : RunLedger::read(directory);
  require_booked(ledger, entry.stage, directory, limits);
  ledger.book(std::move(entry));
  if (!directory.empty()) ledger.write(directory, limits);
  require_limits(limits, ledger);
  for (const std::string& limit : broken_limits(limits, ledger)) log.print("warning: {}", limit);
  return ledger;
}

std::string ledger_table(const LedgerConfig& limits, const RunLedger& ledger) {
  std::string text;
  for (const LedgerEntry& entry : ledger.entries()) {
    for (const auto& [name, score] : entry.scores) {
      text += fmt::format("{:<28} {} {:.5f}   ({} tokens)\n", name, score.bytes > 0 ? "val_bpb" : "val_loss",
                          score.bytes > 0 ? score.val_bpb : score.val_loss_nats, score.tokens);
    }
  }
  for (const BudgetUse& use : budget_uses(limits, ledger)) {
    text += fmt::format("{:<28} {} of {}   {} ({})\n", counts_bytes(use) ? "bytes" : "seconds",
                        amount_text(use, use.used), amount_text(use, use.limit),
                        use.kept() ? "within budget" : "OVER BUDGET", use.what);
  }
  return text;
}

}  // namespace mulligan
