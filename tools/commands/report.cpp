// mulligan report
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
#include "framework/report/tensorboard.h"
#include "framework/run/run_files.h"
#include "tools/commands/tool_commands.h"
#include "tools/report_page/run_record.h"
#include "tools/report_page/tables_page.h"
#include "tools/report_page/write_report.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> runs;
  std::vector<std::string> tables;  // folders; in place of runs
  std::string output;
  bool overwrite = false;
  // Paths; empty: not wanted.
  std::string tensorboard;  // folder for an event file
  std::string csv;          // table with a row per reported step
};

// When the training clock stood at zero: the file was last written when it stood at the last step's reading.
double start_of(const fs::path& metrics, const MetricsHistory& history) {
  const auto written = std::chrono::file_clock::to_sys(fs::last_write_time(metrics));
  const double seconds = std::chrono::duration<double>(written.time_since_epoch()).count();
  return history.steps.empty() ? seconds : seconds - history.steps.back().elapsed_seconds;
}

// Prints the path of each file that it writes, and warns of what the directory's files are doubted for. Throws Error.
void export_metrics(const ReportArguments& arguments) {
  const std::string& run = arguments.runs.front();
  const fs::path metrics = RunFiles{run}.metrics();
  if (!fs::exists(metrics))
    throw data_error("'{}' holds no metrics.jsonl; give the directory of a run.", run);
  for (const std::string& doubt : report::read_run(run).doubts) print_warning(printable(doubt));
  const MetricsHistory history = read_metrics(metrics);
  const std::vector<Scalar> scalars = scalars_of(history);
  if (!arguments.csv.empty()) {
    write_file_atomically(arguments.csv, csv_table(scalars));
    fmt::print("{}\n", arguments.csv);
  }
  if (arguments.tensorboard.empty()) return;
  const double started = start_of(metrics, history);
  // TensorBoard takes files whose names begin like this; the number tells the runs of one folder apart.
  const fs::path file =
      fs::path(arguments.tensorboard) / fmt::format("events.out.tfevents.{:.0f}.mulligan", started);
  fs::create_directories(arguments.tensorboard);
  write_file_atomically(file, tensorboard_events(scalars, started));
  fmt::print("{}\n", file.string());
}

void report_run(const ReportArguments& arguments) {
  const std::string& directory = arguments.runs.front();
  const report::RunRecord run = report::read_run(directory);
  remove_temporary_leftovers(directory);
  const fs::path output = arguments.output.empty() ? run.files.report() : fs::path(arguments.output);
  write_file_atomically(output, report::run_page(run));
  fmt::print("{}\n", output.string());
}

void report_tables(const ReportArguments& arguments) {
  if (arguments.output.empty())
    throw config_error("--tables needs a file for its page; name one with --output.");
  if (fs::exists(fs::symlink_status(arguments.output)) && !arguments.overwrite) {
    throw config_error("'{}' exists; name another file, or replace it with --overwrite.", arguments.output);
  }
  write_file_atomically(arguments.output,
                        report::tables_page({arguments.tables.begin(), arguments.tables.end()}));
  fmt::print("{}\n", arguments.output);
}

void compare_runs(const ReportArguments& arguments) {
  const report::Comparison comparison = report::compare(report::read_runs(arguments.runs));
  fmt::print("{}", printable(report::comparison_text(comparison), LineBreaks::kept));
  if (arguments.output.empty()) return;
  write_file_atomically(arguments.output, report::comparison_page(comparison));
  fmt::print("\n{}\n", arguments.output);
}

void make_report(const ReportArguments& arguments) {
  if (arguments.runs.empty() == arguments.tables.empty()) {
    throw config_error(
        "a report is of run directories, or of folders of tables with --tables; name one of them.");
  }
  if (!arguments.tensorboard.empty() || !arguments.csv.empty()) {
    if (arguments.runs.size() != 1)
      throw config_error("--tensorboard and --csv are of one run directory; name one.");
    return export_metrics(arguments);
  }
  if (!arguments.tables.empty()) return report_tables(arguments);
  arguments.runs.size() == 1 ? report_run(arguments) : compare_runs(arguments);
}

}  // namespace

void add_report_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "report",
      "Writes a run's report.html, compares several runs, or writes a run's metrics for other programs");
  auto arguments = std::make_shared<ReportArguments>();
  command
      ->add_option(
          "runs", arguments->runs,
          "Run directory; of several, final figures side by side, statistics over seeds and the keys that "
          "differ are printed")
      ->type_name("RUN");
  CLI::Option* tables =
      command
          ->add_option(
              "--tables", arguments->tables,
              "Folders with a tables.md, or folders of such folders; makes one page of all tables in "
              "place of a run's")
          ->type_name("FOLDER");
  CLI::Option* output =
      command
          ->add_option("--output", arguments->output,
                       "Page; without it report.html in the directory of one run, and none of "
                       "several")
          ->type_name("FILE");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the page of --tables where it exists")
      ->needs(tables);
  const auto add_export = [&](const char* name, std::string& path, const char* type, const char* help) {
    command->add_option(name, path, help)->type_name(type)->excludes(tables)->excludes(output);
  };
  add_export("--tensorboard", arguments->tensorboard, "FOLDER",
             "In place of the page: folder for an event file; draw it with: tensorboard --logdir FOLDER");
  add_export("--csv", arguments->csv, "FILE", "In place of the page: table with a row per reported step");
  command->callback([arguments] { make_report(*arguments); });
}

}  // namespace mulligan
