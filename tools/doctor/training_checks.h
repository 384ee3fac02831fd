// Checks that train: D30, D32, D34 and D35.
#pragma once

#include <vector>

#include "framework/config/run_config.h"
#include "framework/data/segments.h"
#include "framework/plugin/plugin_host.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// D32: a hundred steps on one row bring its loss below a tenth, and not below 0.
Finding judge_overfit(double first_nats, double last_nats, int steps);

// D34: two runs of three steps are the same to the bit, where the backend promises that. D30: the state
// of training is the same after a checkpoint was written and read, and on another instance of the
// backend. D35: so is the loss, and a checkpoint with a changed byte is refused. `row`: of 16 tokens or
// more.
std::vector<Finding> check_training(const LoadedConfig& loaded, PluginHost& host, const Batch& row);

}  // namespace mulligan::doctor
