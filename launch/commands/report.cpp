// mulligan report, mulligan compare
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/report_page/write_report.h"
#include "framework/run/replaced_run.h"
#include "launch/commands/commands.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::string run;
  std::vector<std::string> others;
  std::string output;
};

struct CompareArguments {
  std::vector<std::string> runs;
  std::string output;
};

void report_run(const ReportArguments& arguments) {
  const report::RunRecord run = report::read_run(arguments.run);
  remove_temporary_leftovers(arguments.run);
  const fs::path output = arguments.output.empty() ? run.files.report() : fs::path(arguments.output);
  write_file_atomically(output, report::run_page(run, report::read_runs(arguments.others)));
  fmt::print("{}\n", output.string());
}

void compare_runs(const CompareArguments& arguments) {
  if (arguments.runs.size() < 2) {
    throw config_error("a comparison needs at least two run directories; `mulligan report` is for one.");
  }
  const report::Comparison comparison = report::compare(report::read_runs(arguments.runs));
  fmt::print("{}", printable(report::comparison_text(comparison), LineBreaks::kept));
  if (arguments.output.empty()) return;
  write_file_atomically(arguments.output, report::comparison_page(comparison));
  fmt::print("\n{}\n", arguments.output);
}

}  // namespace

void add_report_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("report", "Writes report.html from what a run directory holds");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option("run", arguments->run, "Run directory")->required()->type_name("RUN");
  command
      ->add_option("--compare", arguments->others,
                   "Other run directories, with which the report ends in a comparison")
      ->type_name("RUN");
  command->add_option("--output", arguments->output, "Page; without it report.html in the run directory")
      ->type_name("FILE");
  command->callback([arguments] { report_run(*arguments); });
}

void add_compare_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "compare", "Sets runs side by side: final figures, statistics over seeds, keys that differ");
  auto arguments = std::make_shared<CompareArguments>();
  command->add_option("runs", arguments->runs, "Run directories")->required()->type_name("RUN");
  command
      ->add_option("--output", arguments->output,
                   "Page with the tables and the curves; without it the tables are printed alone")
      ->type_name("FILE");
  command->callback([arguments] { compare_runs(*arguments); });
}

}  // namespace mulligan
