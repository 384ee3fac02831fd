// Checks of what a run learns from, and checks that train.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/data/loader.h"
#include "framework/data/segments.h"
#include "framework/plugin/plugin_host.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// D19. `repeat_share`: how often a token of the corpus equals the one before it.
Finding check_targets(const std::vector<Batch>& rows, double repeat_share);
// D19 of rows whose tokens are hidden.
Finding check_masked_targets(const std::vector<Batch>& rows, const MaskingOptions& masking);

// D31. `planned_spans`: rows that the run will read; 0 where a time budget ends it.
Finding check_end_of_data(const LoaderOptions& options, std::int64_t planned_spans);

// D32
Finding judge_overfit(double first_nats, double last_nats, int steps);

// D30, D32, D34 and D35. `row`: 16 tokens or more.
std::vector<Finding> check_training(const LoadedConfig& loaded, PluginHost& host, const Batch& row);

}  // namespace mulligan::doctor
