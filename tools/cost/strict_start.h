// What ledger.rules = "strict" refuses that is known before a run starts.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "tools/cost/cost.h"

namespace mulligan {

// One rule, with what is predicted for the run.
struct StrictRule {
  std::string rule;     // "memory of training"
  std::string value;    // "60.1 GB of 80.0 GB"
  std::string problem;  // a sentence without full stop; "": the run can keep the rule
  bool of_data = false;
};

struct StrictStartOptions {
  // The card whose memory and rates are compared. Absent: the device of the configured backend, without rates.
  std::optional<Card> card = {};
  int ranks = 1;
  // Source tree whose code is counted. Empty: the current folder where it is one, else code is not counted.
  std::filesystem::path source = {};
};

// Every rule that concerns the configuration, in a fixed order and whatever ledger.rules is. Resolves the plugins' keys in
// `loaded`. Reads the validation set, but neither training data nor weights. What cannot be planned is a problem of its rule.
std::vector<StrictRule> strict_rules_at_start(LoadedConfig& loaded, PluginHost& host,
                                              const StrictStartOptions& options = {});

// A rule whose value and problem `judge` fills. An Error that it throws is the problem.
StrictRule judge_rule(const std::string& name, const std::function<void(StrictRule&)>& judge);

// Throws one Error that names every problem: data_error where all of them are about data, else config_error.
void require_kept(const std::vector<StrictRule>& rules);

// Under strict rules: throws one Error that names every rule that the run cannot keep. data_error where all
// of them are about data, else config_error.
void require_strict_start(LoadedConfig& loaded, PluginHost& host, const StrictStartOptions& options = {});

// "rule  value  kept", a line for each.
std::string strict_rules_table(const std::vector<StrictRule>& rules);

}  // namespace mulligan
