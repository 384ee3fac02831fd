// The number of steps of a run by its configuration, and its predicted hours on a card.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "tools/cost/prediction.h"

namespace mulligan {

// Steps of each phase; empty where a clock ends the run or one of its phases.
std::vector<std::int64_t> planned_steps(const RunConfig& config);

// "54.1 GB of the card's 80 GB", with a warning where that is more than 90 % of it.
std::string memory_of_card(std::int64_t bytes, const Card& card, const char* remedy);

// Steps, hours and memory of the whole run on the card that `phases` are of, a line each; ends with a newline.
// Validations, checkpoints and communication between ranks are not in the hours. "" where a clock ends the run.
std::string format_run_length(const RunConfig& config, const std::vector<PredictedPhase>& phases,
                              const DryRunOptions& options, const DryRun& plan);

}  // namespace mulligan
