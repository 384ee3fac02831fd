// mulligan report, mulligan compare
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/run/replaced_run.h"
#include "tools/commands/tool_commands.h"
#include "tools/report_page/tables_page.h"
#include "tools/report_page/write_report.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::string run;
  std::vector<std::string> others;
  std::vector<std::string> tables;  // folders; instead of a run
  std::string output;
  bool overwrite = false;
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

void make_page(const ReportArguments& arguments) {
  if (arguments.run.empty() == arguments.tables.empty()) {
    throw config_error(
        "a report is of a run directory, or of folders of tables with --tables; name one of them.");
  }
  arguments.run.empty() ? report_tables(arguments) : report_run(arguments);
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
  CLI::App* command = app.add_subcommand(
      "report", "Writes report.html from what a run directory holds, or a page of experiments' tables");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option("run", arguments->run, "Run directory")->type_name("RUN");
  CLI::Option* others = command
                            ->add_option("--compare", arguments->others,
                                         "Other run directories, with which the report ends in a comparison")
                            ->type_name("RUN");
  CLI::Option* tables =
      command
          ->add_option(
              "--tables", arguments->tables,
              "In place of a run: folders with a tables.md, or of such folders; one page of them all")
          ->type_name("FOLDER")
          ->excludes(others);
  command->add_option("--output", arguments->output, "Page; without it report.html in the run directory")
      ->type_name("FILE");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the page of --tables where it exists")
      ->needs(tables);
  command->callback([arguments] { make_page(*arguments); });
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
