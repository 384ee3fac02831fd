// The report and the comparison of real runs: every section and every curve is there.
#include <gtest/gtest.h>

#include <set>

#include "framework/core/file.h"
#include "tests/end_to_end/tiny_run.h"
#include "tools/report_page/write_report.h"

namespace mulligan::end_to_end::report_test {
namespace {

// From the element's id to the end of its figure or section.
std::string element(const std::string& html, const std::string& id, const std::string& end) {
  const std::size_t start = html.find("id=\"" + id + "\"");
  if (start == std::string::npos) return "";
  return html.substr(start, html.find(end, start) - start);
}

// The names of the curves that a chart draws, each with at least one point.
std::set<std::string> curves(const std::string& html, const std::string& chart) {
  const std::string figure = element(html, chart, "</figure>");
  std::set<std::string> names;
  for (std::size_t at = figure.find(" d=\"M"); at != std::string::npos; at = figure.find(" d=\"M", at + 1)) {
    const std::size_t name = figure.find("data-name=\"", at), end = figure.find('>', at);
    if (name > end) continue;
    names.insert(figure.substr(name + 11, figure.find('"', name + 11) - name - 11));
  }
  return names;
}

using Names = std::set<std::string>;

std::vector<std::string> with_restarts(int seed) {
  return {"train.steps=40",
          "train.log_every=2",
          "train.validate_every=10",
          "schedule.plugin=sgdr",
          "schedule.period=10",
          "run.name=tiny <" + std::to_string(seed) + ">",
          "run.seed=" + std::to_string(seed)};
}

TEST(Report, EverySectionAndCurveOfATrainedRun) {
  const RunResult result = tiny().train(with_restarts(1));
  report::write_report(result.directory);
  const std::string html = read_file(result.directory / "report.html");
  // Nothing was quantised, adapted or calibrated yet: these sections are left out, and so are their links.
  for (const char* section : {"artifact", "ttt", "calibration"})
    EXPECT_EQ(html.find("href=\"#" + std::string(section) + "\""), std::string::npos) << section;
  for (const char* section : {"summary", "training", "scores", "time", "memory", "configuration"}) {
    EXPECT_NE(element(html, section, "</section>").find("<h2>"), std::string::npos) << section;
    EXPECT_NE(html.find("href=\"#" + std::string(section) + "\""), std::string::npos) << section;
  }
  EXPECT_EQ(curves(html, "loss-curve"),
            (Names{"training, single steps", "training, window mean", "validation"}));
  EXPECT_EQ(curves(html, "bpb-curve"), (Names{"training, window mean", "validation"}));
  EXPECT_EQ(curves(html, "lr-curve"), (Names{"matrices", "rest"}));
  EXPECT_EQ(curves(html, "gradient-curve"), (Names{"all", "matrices", "rest", "train.clip_norm = 1"}));
  EXPECT_EQ(curves(html, "time-curve"), (Names{"mean", "slowest"}));
  EXPECT_NE(element(html, "lr-curve", "</figure>").find("warm restart"), std::string::npos);
  EXPECT_NE(element(html, "loss-curve", "</figure>").find("phase looped"), std::string::npos);
  for (const char* bar : {"memory-bar", "programs-bar", "time-bar"}) {
    EXPECT_NE(element(html, bar, "</figure>").find("class=\"bar f0\" d=\"M0.0 0H"), std::string::npos) << bar;
  }
  EXPECT_NE(html.find("tiny.toml:"), std::string::npos);  // an origin
  EXPECT_NE(html.find("tiny &lt;1&gt;"), std::string::npos);
  for (const char* outside : {"http", "src=", "url(", "@import", "<link"}) {
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  }
}

// A killed run has metrics, but neither a result nor a whole last line.
TEST(Report, OfARunThatWasKilled) {
  const RunResult result = tiny().train({"train.steps=6", "train.log_every=1"});
  const std::filesystem::path metrics = result.directory / "metrics.jsonl";
  std::filesystem::remove(result.directory / "result.json");
  const std::string text = read_file(metrics);
  write_file_atomically(metrics, text.substr(0, text.size() - 25));
  report::write_report(result.directory);
  const std::string html = read_file(result.directory / "report.html");
  EXPECT_NE(html.find("There is no result yet"), std::string::npos);
  EXPECT_NE(html.find("is unfinished"), std::string::npos);
  EXPECT_EQ(curves(html, "gradient-curve"), (Names{"all", "matrices", "rest", "train.clip_norm = 1"}));
}

// Figures of an earlier run's weights must not be shown for the next one's.
TEST(Report, StartingAnewRemovesWhatWasSaidOfTheOldWeights) {
  const RunResult first = tiny().train({"train.steps=1"});
  const std::vector<std::string> derived = {"report.html", "ttt_result.json", "quantize_result.json",
                                            "evaluations.jsonl", "artifact.mulligan"};
  for (const std::string& file : derived) write_file_atomically(first.directory / file, "old");
  tiny().train_in(first.directory.string(), {"train.steps=1"}, "", true);
  for (const std::string& file : derived)
    EXPECT_FALSE(std::filesystem::exists(first.directory / file)) << file;
}

}  // namespace
}  // namespace mulligan::end_to_end::report_test
