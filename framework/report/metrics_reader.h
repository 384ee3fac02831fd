// Reads metrics.jsonl back: everything that MetricsFile writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/report/metrics_file.h"

namespace mulligan {

struct RestartRecord {
  std::int64_t step = 0;
  std::string optimizer;
  std::int64_t cycle = 0;
  double lr = 0;
};

struct MetricsHistory {
  std::vector<StepRecord> steps;
  std::vector<ValidationRecord> validations;
  std::vector<RestartRecord> restarts;
  std::vector<PhaseRecord> phase_starts;
  std::vector<PhaseSwitchRecord> phase_switches;
  std::vector<std::int64_t> resumes;   // steps at which another process continued
  std::optional<MemoryRecord> memory;  // the last process's
  bool torn = false;                   // the last line is unfinished: its writer was killed
};

// Reads all events. A number that was not finite is NaN. Unknown events are skipped. Throws data_error that names `origin` and the
// line, for a damaged line (json_lines.h).
MetricsHistory parse_metrics(std::string_view text, const std::string& origin);
// The same for a file; a missing file has no events.
MetricsHistory read_metrics(const std::filesystem::path& path);

// The numbers of metrics.jsonl as named series, for other tools: TensorBoard event files and CSV tables.
struct Scalar {
  std::int64_t step = 0;
  double elapsed_seconds = 0;  // of the training clock; of a validation, when its step ended
  std::string
      name;  // "loss_nats", "lr/matrices": the name in metrics.jsonl, with the table's entry after a slash
  double value = 0;  // finite
};

// All finite numbers, in the order of the steps; validations after the step they followed.
std::vector<Scalar> scalars_of(const MetricsHistory& history);

// `text` as a field of a CSV table: quoted where it holds commas, quotes or line breaks.
std::string csv_field(const std::string& text);

// A table with a row per step and a column per name, in order of first appearance. Commas separate; a missing number is empty; lines
// end in CR LF (RFC 4180).
std::string csv_table(const std::vector<Scalar>& scalars);

}  // namespace mulligan
