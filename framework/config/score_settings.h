// Which settings a score depends on.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "framework/config/run_config.h"

namespace mulligan {

enum class ScoreCommand { eval, ttt };

// Whether a setting can move the score of this command. Others (where the training data lie, the number of
// threads, how often a state is saved, the limits of [ledger]) cannot.
bool moves_score(std::string_view key, ScoreCommand command);

// All settings of `loaded` that can, by full name, in TOML syntax.
std::map<std::string, std::string> score_settings(const LoadedConfig& loaded, ScoreCommand command);

}  // namespace mulligan
