// Input: the number of steps to keep, one byte, then metrics.jsonl of a run that stopped. It is continued,
// and its curves are drawn.
#include "framework/core/file.h"
#include "framework/report/metrics_file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/scratch_folder.h"
#include "tools/report_page/run_sections.h"

namespace mulligan::fuzz {

void metrics(std::string_view input) {
  if (input.empty()) return;
  static const test_support::ScratchFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  const auto step = static_cast<std::int64_t>(static_cast<unsigned char>(input.front()));
  write_bytes(path, input.substr(1));
  const auto resume = [&] {
    MetricsFile(path, step).resume(step, "here");
    return read_file(path);
  };
  const auto kept = unless_refused(resume);
  if (!kept) require(read_file(path) == input.substr(1), "a refused file was changed");
  const std::string once_more = kept ? resume() : "";
  report::RunRecord run;
  if (auto history = unless_refused([&] { return parse_metrics(input.substr(1), "metrics.jsonl"); })) {
    run.metrics = std::move(*history);
    for (const report::RunSection& section : report::run_sections()) {
      const std::string html = section.body(run);  // or nothing
      require(html.empty() || html.ends_with(">\n"), "a section without an end");
    }
  }
  if (!kept) return;
  require(once_more.starts_with(*kept) && once_more.ends_with("\n"), "a second resume changes what was kept");
}

}  // namespace mulligan::fuzz
