// mulligan export
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/report/console.h"
#include "framework/report/metrics_reader.h"
#include "framework/report/run_directory.h"
#include "framework/report/scalars.h"
#include "framework/report/tensorboard.h"
#include "tools/commands/tool_commands.h"
#include "tools/report_page/run_record.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct ExportArguments {
  std::string run, tensorboard, csv;
};

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

void export_metrics(const ExportArguments& arguments) {
  if (arguments.tensorboard.empty() && arguments.csv.empty()) {
    throw config_error("name what to write: --tensorboard FOLDER, --csv FILE or both.");
  }
  const fs::path metrics = RunFiles{arguments.run}.metrics();
  if (!fs::exists(metrics)) {
    throw data_error("'{}' holds no metrics.jsonl; give the directory of a run.", arguments.run);
  }
  for (const std::string& doubt : report::read_run(arguments.run).doubts) print_warning(printable(doubt));
  const MetricsHistory history = read_metrics(metrics);
  const std::vector<Scalar> scalars = scalars_of(history);
  if (!arguments.csv.empty()) {
    write_file_atomically(arguments.csv, csv_table(scalars));
    fmt::print("{}\n", arguments.csv);
  }
  if (arguments.tensorboard.empty()) return;
  const double started = start_of(metrics, history);
  const fs::path file = event_file(arguments.tensorboard, started);
  fs::create_directories(arguments.tensorboard);
  write_file_atomically(file, tensorboard_events(scalars, started));
  fmt::print("{}\n", file.string());
}

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("export", "Writes a run's metrics for TensorBoard, or as a table (CSV)");
  auto arguments = std::make_shared<ExportArguments>();
  command->add_option("run", arguments->run, "Run directory")->required()->type_name("RUN");
  command
      ->add_option("--tensorboard", arguments->tensorboard,
                   "Folder for an event file; draw it with: tensorboard --logdir FOLDER")
      ->type_name("FOLDER");
  command->add_option("--csv", arguments->csv, "Table with a row per reported step")->type_name("FILE");
  command->callback([arguments] { export_metrics(*arguments); });
}

}  // namespace mulligan
