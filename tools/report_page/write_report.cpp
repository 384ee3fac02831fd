#include "tools/report_page/write_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/core/file.h"
#include "tools/report_page/html.h"
#include "tools/report_page/run_sections.h"

namespace mulligan::report {

std::string run_page(const RunRecord& run, const std::vector<RunRecord>& others) {
  std::string navigation = "<nav>", body;
  const auto link = [&](const char* id, const char* title) {
    navigation += fmt::format("<a href=\"#{}\">{}</a>", id, title);
  };
  for (const RunSection& part : run_sections()) {
    const std::string html = part.body(run);
    if (html.empty()) continue;
    link(part.id, part.title);
    body += section(part.id, part.title, html);
  }
  if (!others.empty()) {
    std::vector<RunRecord> all{run};
    all.insert(all.end(), others.begin(), others.end());
    link("comparison", "Comparison");
    body += "<div id=\"comparison\">\n" + comparison_sections(compare(std::move(all))) + "</div>\n";
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
