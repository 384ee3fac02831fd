// The numbers of metrics.jsonl as named series, for other tools: TensorBoard event files and CSV tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/report/metrics_reader.h"

namespace mulligan {

struct Scalar {
  std::int64_t step = 0;
  double elapsed_seconds = 0;  // of the training clock; of a validation, when its step ended
  std::string name;  // "loss_nats", "lr/matrices": as in metrics.jsonl, with the part behind a slash
  double value = 0;  // finite
};

// All finite numbers, in the order of the steps; validations after the step they followed.
std::vector<Scalar> scalars_of(const MetricsHistory& history);

// A table with a row per step and a column per name, in order of first appearance. Commas separate, a number
// that a row lacks is empty, lines end in CR LF (RFC 4180).
std::string csv_table(const std::vector<Scalar>& scalars);

}  // namespace mulligan
