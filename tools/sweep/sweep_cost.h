// What the trainings of a sweep cost: speed, seconds to a loss, memory, energy, and which rows no other beats.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/sweep/sweep.h"

namespace mulligan {

// From the result and the metrics of a run directory. With a target above 0 the seconds of training up to the
// first report (train.log_every) whose mean loss is not above it. Throws data_error.
SweepCost read_cost(const std::filesystem::path& directory, double target_loss_nats);
nlohmann::ordered_json cost_json(const SweepCost& cost);

// Means over the seeds of one row; a figure is absent where one seed has none.
struct RowCost {
  std::string name;
  std::int64_t ranks = 1;
  std::vector<double> tokens_per_second, seconds_to_target, process_bytes, device_bytes, joules,
      joules_per_token, metric = {};  // by seed; empty: absent
  bool pareto = false;
};

// Precondition: Sweep::costs. A row is on the Pareto front if no other row is as good in all of these and better in one:
// seconds (to the target, or per token without one), device memory, energy (if all rows have it), and metric. Means count.
std::vector<RowCost> row_costs(const Sweep& sweep, const SweepResult& result);

// Mean +- standard deviation of every figure by row, n, the front, and why energy is absent where it is.
std::string cost_table(const Sweep& sweep, const SweepResult& result);

}  // namespace mulligan
