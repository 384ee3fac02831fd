// What mulligan record refuses before its runs start.
#pragma once

#include <string>
#include <vector>

#include "tools/cost/strict_start.h"

namespace mulligan {

struct RecordRuleOptions {
  std::string track;         // --track
  StrictStartOptions start;  // card, ranks and source tree
};

// The rules of a record, then those of strict_rules_at_start(). Compares the training text with the validation text
// and resolves the plugins' keys in `loaded`.
std::vector<StrictRule> record_rules(LoadedConfig& loaded, PluginHost& host,
                                     const RecordRuleOptions& options);

}  // namespace mulligan
