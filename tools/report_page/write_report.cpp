#include "tools/report_page/write_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/core/file.h"
#include "tools/report_page/html.h"
#include "tools/report_page/run_sections.h"

namespace mulligan::report {

std::string run_page(const RunRecord& run, const std::vector<RunRecord>& others) {
  struct Part {
    const char *id, *name;
    std::string html;
  };
  std::vector<Part> parts = {{"summary", "Result", summary_section(run)},
                             {"training", "Training", training_section(run)},
                             {"scores", "Scores", scores_section(run)},
                             {"samples", "Samples", samples_section(run)},
                             {"artifact", "Artifact", artifact_section(run)},
                             {"ttt", "Test-time training", ttt_section(run)},
                             {"calibration", "Calibration", calibration_section(run)},
                             {"ensemble", "Ensemble", ensemble_section(run)},
                             {"time", "Time and budgets", time_section(run)},
                             {"memory", "Memory", memory_section(run)},
                             {"configuration", "Configuration", configuration_section(run)}};
  if (!others.empty()) {
    std::vector<RunRecord> all{run};
    all.insert(all.end(), others.begin(), others.end());
    parts.push_back(
        {"comparison", "Comparison",
         "<div id=\"comparison\">\n" + comparison_sections(compare(std::move(all))) + "</div>\n"});
  }
  std::string navigation = "<nav>", body;
  for (const Part& part : parts) {
    if (part.html.empty()) continue;
    navigation += fmt::format("<a href=\"#{}\">{}</a>", part.id, part.name);
    body += part.html;
  }
  navigation += "</nav>\n";
  const std::string missing = missing_text(run);
  return page(run.name, "<code>" + escape(run.files.directory.string()) + "</code>",
              navigation + body + (missing.empty() ? "" : note(missing)));
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
