#include "framework/report_page/write_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/core/file.h"
#include "framework/report_page/html.h"
#include "framework/report_page/page.h"
#include "framework/report_page/run_sections.h"

namespace mulligan::report {

std::string run_page(const RunRecord& run, const std::vector<RunRecord>& others) {
  std::vector<std::pair<std::string, std::string>> links = {
      {"summary", "Result"},         {"training", "Training"},
      {"scores", "Scores"},          {"artifact", "Artifact"},
      {"ttt", "Test-time training"}, {"calibration", "Calibration"},
      {"ensemble", "Ensemble"},      {"time", "Time and budgets"},
      {"memory", "Memory"},          {"configuration", "Configuration"}};
  std::string compared;
  if (!others.empty()) {
    std::vector<RunRecord> all{run};
    all.insert(all.end(), others.begin(), others.end());
    links.emplace_back("comparison", "Comparison");
    compared = "<div id=\"comparison\">\n" + comparison_sections(compare(std::move(all))) + "</div>\n";
  }
  std::string navigation = "<nav>";
  for (const auto& [id, name] : links) navigation += fmt::format("<a href=\"#{}\">{}</a>", id, name);
  navigation += "</nav>\n";
  return page(run.name, "<code>" + escape(run.files.directory.string()) + "</code>",
              navigation + summary_section(run) + training_section(run) + scores_section(run) +
                  artifact_section(run) + ttt_section(run) + calibration_section(run) +
                  ensemble_section(run) + time_section(run) + memory_section(run) +
                  configuration_section(run) + compared);
}

std::string comparison_page(const Comparison& comparison) {
  std::string directories;
  for (const RunRecord& run : comparison.runs) {
    directories += fmt::format("{}<code>{}</code>", directories.empty() ? "" : ", ",
                               escape(run.files.directory.string()));
  }
  return page(fmt::format("{}", fmt::join(comparison.labels, ", ")), directories,
              comparison_sections(comparison));
}

void write_report(const std::filesystem::path& directory) {
  const RunRecord run = read_run(directory);
  write_file_atomically(run.files.report(), run_page(run));
}

}  // namespace mulligan::report
