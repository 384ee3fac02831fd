#include "tools/commands/tool_commands.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/report/console.h"
#include "framework/report/metrics_reader.h"
#include "framework/report/run_directory.h"
#include "framework/report/tensorboard.h"
#include "tools/report_page/run_record.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// When the training clock stood at zero: the file was last written when it stood at the last step's reading.
double start_of(const fs::path& metrics, const MetricsHistory& history) {
  const auto written = std::chrono::file_clock::to_sys(fs::last_write_time(metrics));
  const double seconds = std::chrono::duration<double>(written.time_since_epoch()).count();
  return history.steps.empty() ? seconds : seconds - history.steps.back().elapsed_seconds;
}

// TensorBoard takes files whose names hold this word; the rest tells the runs of one folder apart.
fs::path event_file(const fs::path& folder, double started) {
  return folder / fmt::format("events.out.tfevents.{:.0f}.mulligan", started);
}

}  // namespace

void export_metrics(const std::string& run, const MetricsExport& wanted) {
  const fs::path metrics = RunFiles{run}.metrics();
  if (!fs::exists(metrics))
    throw data_error("'{}' holds no metrics.jsonl; give the directory of a run.", run);
  for (const std::string& doubt : report::read_run(run).doubts) print_warning(printable(doubt));
  const MetricsHistory history = read_metrics(metrics);
  const std::vector<Scalar> scalars = scalars_of(history);
  if (!wanted.csv.empty()) {
    write_file_atomically(wanted.csv, csv_table(scalars));
    fmt::print("{}\n", wanted.csv);
  }
  if (wanted.tensorboard.empty()) return;
  const double started = start_of(metrics, history);
  const fs::path file = event_file(wanted.tensorboard, started);
  fs::create_directories(wanted.tensorboard);
  write_file_atomically(file, tensorboard_events(scalars, started));
  fmt::print("{}\n", file.string());
}

}  // namespace mulligan
