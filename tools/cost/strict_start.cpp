#include "tools/cost/strict_start.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "framework/artifact/artifact_run.h"
#include "framework/artifact/calibrate.h"
#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/graph/program.h"
#include "framework/plugin/quantizer.h"
#include "framework/run/device_plan.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_plugins.h"
#include "framework/run/strict_rules.h"
#include "framework/ttt/ttt_inputs.h"
#include "tools/cost/dry_run.h"

namespace mulligan {
namespace {

// The device of the configured backend; without memory_bytes where it cannot be started here.
Card own_device(const LoadedConfig& loaded, PluginHost& host) {
  Card card;
  std::string why_not;
  const RunPlugins device = device_plugins(loaded, host, why_not);
  if (!device.backend) return card;
  const mlg_device_info info = device.backend->info();
  card.description = info.description;
  card.memory_bytes = static_cast<double>(info.memory_bytes);
  return card;
}

void judge_memory(StrictRule& rule, const Card& card, const DeviceBytes& plan, const char* remedy) {
  constexpr double gigabyte = 1e9;
  const auto bytes = static_cast<double>(plan.bytes);
  rule.value = fmt::format("{:.2f} GB{}", bytes / gigabyte,
                           plan.workspace_bytes ? "" : " and the workspace of kernels, which is not known");
  if (card.memory_bytes == 0) return;
  rule.value += fmt::format(" of the {:.2f} GB of {}", card.memory_bytes / gigabyte, card.description);
  if (bytes <= card.memory_bytes) return;
  rule.problem = fmt::format("{} needs {}; {}", rule.rule, rule.value, remedy);
}

struct CalibrationPlan {
  DeviceBytes memory;
  double seconds = 0;  // at least, on the card; 0: not known
};

bool calibrates(const LoadedConfig& loaded, PluginHost& host) {
  if (!loaded.config.quantize) return false;
  const PluginHandle plugin = load_plugin(host, MLG_QUANTIZER, loaded.config.quantize->table);
  return Quantizer(plugin, loaded.plugin("quantize")).needs_hessian();
}

CalibrationPlan plan_calibration(const LoadedConfig& loaded, PluginHost& host,
                                 const std::optional<Card>& card) {
  const RunConfig& config = loaded.config;
  const QuantizeOptions& options = config.quantize->options;
  const RunPlugins plugins = make_run_plugins(loaded, host, "null");
  LoadedModel model(*plugins.backend, config);
  const CalibrationShape shape{options.calibration_rows, config.train.sequence_length};
  Calibrator calibrator(model.store(), config.model, model.layouts(), shape);
  CalibrationPlan plan{{{}, static_cast<std::int64_t>(plugins.backend->allocated_bytes()), {}}};
  if (!card) return plan;
  const std::int64_t passes =
      options.calibration_batches * options.calibration_rows / calibrator.rows_per_pass();
  plan.seconds = graph_cost(calibrator.program().graph(), config.train.sequence_length, *card).seconds *
                 static_cast<double>(passes);
  return plan;
}

// Training ends when its budget less the reserve is spent, and calibration counts as training.
void judge_reserve(StrictRule& rule, const RunConfig& config, bool calibrated, double calibration_seconds) {
  const double training = config.train.budget_seconds - config.train.reserve_seconds;
  const double left = config.ledger.train_seconds - training;
  rule.value = fmt::format("{:g} s of training leave {:g} s of ledger.train_seconds = {:g}", training, left,
                           config.ledger.train_seconds);
  if (calibrated) rule.value += " for calibration, which counts as training";
  if (calibration_seconds > 0) rule.value += fmt::format(" and takes at least {:.1f} s", calibration_seconds);
  if (calibrated ? left > calibration_seconds : left >= 0) return;
  const double reserve =
      config.train.budget_seconds - config.ledger.train_seconds + std::ceil(10 * calibration_seconds) / 10;
  rule.problem = fmt::format("{}; raise train.reserve_seconds {} {:g}", rule.value,
                             calibrated ? "above" : "to", reserve);
}

void judge_bytes(StrictRule& rule, LoadedConfig& loaded, PluginHost& host,
                 const std::filesystem::path& source) {
  const PredictedBytes predicted = predict_bytes(loaded, host, source);
  const double total = predicted.model + static_cast<double>(predicted.code.value_or(0));
  const std::int64_t limit = loaded.config.ledger.artifact_bytes;
  rule.value = fmt::format(
      "{:.0f} bytes predicted, {}, of ledger.artifact_bytes = {}", total,
      predicted.code ? fmt::format("{} of them code", *predicted.code) : "code not counted", limit);
  if (total <= static_cast<double>(limit)) return;
  rule.problem = fmt::format("{}: {:.0f} too many; store tensors of [quantize] in fewer bits", rule.value,
                             total - static_cast<double>(limit));
}

void judge_validation(StrictRule& rule, const RunConfig& config) {
  const ValidationSet validation = load_validation(config.data, config.model.vocabulary, config.eval.tokens);
  rule.value = fmt::format("{} tokens in {} shards", validation.tokens.size(), validation.files.size());
  rule.problem = fmt::format("{}", fmt::join(strict_validation_problems(config, validation), "; "));
  rule.of_data = true;
}

}  // namespace

std::vector<StrictRule> strict_rules_at_start(LoadedConfig& loaded, PluginHost& host,
                                              const StrictStartOptions& options) {
  resolve_run_plugins(loaded, host);
  const RunConfig& config = loaded.config;
  std::vector<StrictRule> rules;
  const auto add = [&](const char* name, const auto& judge) { rules.push_back(judge_rule(name, judge)); };
  add("start of training", [&](StrictRule& rule) {
    rule.value = config.init.from.empty() ? "initial weights" : "init.from";
    rule.problem = borrowed_start(config);
  });
  const bool calibrated = calibrates(loaded, host);
  const Card card = options.card ? *options.card : own_device(loaded, host);
  double calibration_seconds = 0;
  if (calibrated) {
    add("memory of calibration", [&](StrictRule& rule) {
      const CalibrationPlan plan = plan_calibration(loaded, host, options.card);
      calibration_seconds = plan.seconds;
      judge_memory(rule, card, plan.memory, "lower quantize.calibration_rows");
    });
  }
  if (config.ledger.train_seconds > 0 && config.train.budget_seconds > 0) {
    add("seconds of training",
        [&](StrictRule& rule) { judge_reserve(rule, config, calibrated, calibration_seconds); });
  }
  if (config.ledger.artifact_bytes > 0 && config.quantize) {
    add("bytes of model and code",
        [&](StrictRule& rule) { judge_bytes(rule, loaded, host, options.source); });
  }
  if (!config.data.validation.empty())
    add("validation set", [&](StrictRule& rule) { judge_validation(rule, config); });
  add("memory of training", [&](StrictRule& rule) {
    const DryRun plan = dry_run(loaded, host, {options.card.value_or(known_cards().front()), options.ranks});
    judge_memory(rule, card, plan, "raise train.micro_batches, or make the model smaller");
  });
  if (!config.ttt) return rules;
  add("scoring by test-time training", [&](StrictRule& rule) {
    rule.value = "every token of the whole set";
    require_scorable(loaded);
  });
  add("memory of test-time training", [&](StrictRule& rule) {
    judge_memory(rule, card, plan_ttt_memory(loaded, host), "lower ttt.batch_documents or ttt.chunk_tokens");
  });
  return rules;
}

StrictRule judge_rule(const std::string& name, const std::function<void(StrictRule&)>& judge) {
  StrictRule rule{name, {}, {}, false};
  try {
    judge(rule);
  } catch (const Error& error) {
    rule.problem = without_full_stop(error.what());
    rule.of_data = error.code() == ExitCode::bad_data;
  }
  return rule;
}

void require_kept(const std::vector<StrictRule>& rules) {
  std::vector<std::string> problems;
  bool all_of_data = true;
  for (const StrictRule& rule : rules) {
    if (rule.problem.empty()) continue;
    problems.push_back(rule.problem);
    all_of_data = all_of_data && rule.of_data;
  }
  if (problems.empty()) return;
  throw Error(all_of_data ? ExitCode::bad_data : ExitCode::bad_configuration,
              fmt::format("{}; under ledger.rules = \"strict\" there would be no result.",
                          fmt::join(problems, "; ")));
}

void require_strict_start(LoadedConfig& loaded, PluginHost& host, const StrictStartOptions& options) {
  if (loaded.config.ledger.rules == LedgerRules::strict)
    require_kept(strict_rules_at_start(loaded, host, options));
}

std::string strict_rules_table(const std::vector<StrictRule>& rules) {
  std::string text;
  for (const StrictRule& rule : rules) {
    text += fmt::format("{:<34} {:<8} {}\n", rule.rule, rule.problem.empty() ? "kept" : "REFUSED",
                        rule.problem.empty() ? rule.value : rule.problem);
  }
  return text;
}

}  // namespace mulligan
