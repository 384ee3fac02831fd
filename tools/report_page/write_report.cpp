#include "tools/report_page/write_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/core/file.h"
#include "tools/report_page/html.h"
#include "tools/report_page/run_sections.h"

namespace mulligan::report {
namespace {

// What could still be made of a run, as a note; "" where there is nothing.
std::string missing_parts(const RunRecord& run) {
  const std::string place = run.files.directory.string();
  std::vector<std::string> ways;
  if (!run.quantize && !run.setting("quantize.plugin").empty())
    ways.push_back(fmt::format("There is no artifact yet: mulligan quantize {}.", place));
  if (!run.ttt && run.ttt_void.empty() && !run.setting("ttt.adapters.plugin").empty())
    ways.push_back(
        fmt::format("No score with test-time training yet: mulligan ttt {0} --output {0}.", place));
  if (run.samples.empty())
    ways.push_back(fmt::format("No sample of text yet: mulligan generate {} --keep.", place));
  return run.result && !ways.empty() ? note(fmt::format("{}", fmt::join(ways, " "))) : "";
}

std::string code(const std::filesystem::path& path) {
  return "<code>" + escape(path.string()) + "</code>";
}

}  // namespace

std::string run_page(const RunRecord& run) {
  std::string navigation = "<nav>", body;
  for (const RunSection& part : run_sections()) {
    const std::string html = part.body(run);
    if (html.empty()) continue;
    navigation += fmt::format("<a href=\"#{}\">{}</a>", part.id, part.title);
    body += section(part.id, part.title, html);
  }
  return page(run.name, code(run.files.directory), navigation + "</nav>\n" + body + missing_parts(run));
}

std::string comparison_page(const Comparison& comparison) {
  std::vector<std::string> directories;
  for (const RunRecord& run : comparison.runs) directories.push_back(code(run.files.directory));
  return page(fmt::format("{}", fmt::join(comparison.labels, ", ")),
              fmt::format("{}", fmt::join(directories, ", ")), comparison_sections(comparison));
}

void write_report(const std::filesystem::path& directory) {
  const RunRecord run = read_run(directory);
  write_file_atomically(run.files.report(), run_page(run));
}

}  // namespace mulligan::report
