// What users see of a configuration: the resolved file, the difference of two, the reference of all keys.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/run_config.h"

namespace mulligan {

// The resolved configuration as TOML, every key with its origin as a comment. Reading it back gives the same
// configuration. Plugin tables are complete after resolve_plugins; before it they hold only what was written.
std::string print_resolved(const LoadedConfig& loaded);

// The text of print_resolved() read back: every key with its value and where that came from.
struct ResolvedSetting {
  std::string key;     // full name; rows of lists are numbered: "parameters.0.optimizer"
  std::string value;   // in TOML syntax
  std::string origin;  // "configs/x.toml:12", "--set", "default" or "derived"; empty where none is written
};

// All settings in the order of the file. Lines that are neither tables nor settings are passed over.
std::vector<ResolvedSetting> resolved_settings(std::string_view text);

// The sha256 of the settings alone: without origins.
std::string settings_digest(std::string_view resolved);

// print_resolved() without origins, and without what is this machine's: paths of libraries, compiled kernels, places to write to.
std::string print_for_artifact(const LoadedConfig& loaded);

// Every setting by its full name, in TOML syntax; rows by position ("parameters.0.optimizer").
std::map<std::string, std::string> flat_settings(const LoadedConfig& loaded);

enum class ScoreCommand { eval, ttt };
// Whether a setting can move the score of this command. Others (where the training data lie, the number of
// threads, how often a state is saved, the limits of [ledger]) cannot.
bool moves_score(std::string_view key, ScoreCommand command);

// One key that differs: its full name and both values in TOML syntax ("" where that side has no such key).
struct ConfigDifference {
  std::string key;
  std::string left;
  std::string right;
};

// The differences of two resolved configurations, sorted by key; rows of [[parameters]] are compared
// by position ("parameters.0.optimizer").
std::vector<ConfigDifference> diff_configs(const LoadedConfig& left, const LoadedConfig& right);

// One line per difference: "model.layers: 6 -> 11"; absent sides print as "(none)".
std::string format_differences(const std::vector<ConfigDifference>& differences);

// The reference of the core keys in Markdown, the text of docs/configuration.md.
std::string write_reference();

}  // namespace mulligan
