#include <fmt/format.h>

#include <cmath>

#include "tools/report_page/comparison.h"
#include "tools/report_page/line_chart.h"
#include "tools/report_page/run_curves.h"
#include "tools/report_page/run_observations.h"
#include "tools/report_page/run_sections.h"

namespace mulligan::report {
namespace {

// One curve per run; empty where no run has a point.
std::string overlay(const Comparison& comparison, LineChart chart,
                    const std::function<std::vector<Point>(const RunRecord&)>& points_of, bool dots = false) {
  bool any = false;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const Stroke line = i / palette_size % 2 == 0 ? Stroke::solid : Stroke::dashed;
    chart.curves.push_back(
        {comparison.labels[i], points_of(comparison.runs[i]), i, dots ? Stroke::dots : line});
    any = any || !chart.curves.back().points.empty();
  }
  return any ? draw(chart) : "";
}

std::string curves(const Comparison& comparison) {
  const auto window = [](const StepRecord& s) { return s.window_loss_nats; };
  const auto norm = [](const StepRecord& s) { return s.gradient_norm; };
  const auto rate = [](const StepRecord& s) { return s.tokens_per_second; };
  const auto factor = [](const StepRecord& s) { return s.lr.empty() ? NAN : s.lr[0].second; };
  std::string html;
  // Losses of masked tokens in pictures of their own.
  const auto losses = [&](const std::string& id, const std::string& by, const char* axis, bool by_seconds) {
    for (const bool fills_in : {false, true}) {
      html += overlay(comparison,
                      {id + (fills_in ? "-masked" : ""),
                       (fills_in ? "Training loss of masked tokens by " : "Training loss by ") + by,
                       "Window means.",
                       axis,
                       fills_in ? "nats per masked token" : "nats per token",
                       false,
                       {},
                       {}},
                      [&](const RunRecord& run) {
                        return run.fills_in_masked() == fills_in ? curve_of(run, window, by_seconds)
                                                                 : std::vector<Point>{};
                      });
    }
  };
  losses("compare-loss-curve", "step", "step", false);
  losses("compare-loss-seconds-curve", "time", "seconds of training", true);
  html += overlay(comparison, {"compare-bpb-curve", "Validation", "", "step", "bits per byte", false, {}, {}},
                  validation_bpb, true);
  html += overlay(
      comparison,
      {"compare-lr-curve", "Learning rate", "Of each run's first optimiser.", "step", "", false, {}, {}},
      [&](const RunRecord& run) { return curve_of(run, factor); });
  html += overlay(comparison,
                  {"compare-gradient-curve",
                   "Gradient norm",
                   "Of all parameters, before clipping.",
                   "step",
                   "logarithmic",
                   true,
                   {},
                   {}},
                  [&](const RunRecord& run) { return curve_of(run, norm); });
  html +=
      overlay(comparison, {"compare-speed-curve", "Speed", "", "step", "tokens per second", false, {}, {}},
              [&](const RunRecord& run) { return curve_of(run, rate); });
  html +=
      overlay(comparison,
              {"compare-ttt-curve",
               "Test-time training, running score",
               "",
               "batch of documents",
               "bits per byte",
               false,
               {},
               {}},
              [](const RunRecord& run) {
                return run.ttt && run.ttt->bits ? running_ttt_score(*run.ttt, true) : std::vector<Point>();
              });
  return html.empty() ? note("No run has reported a step.") : "<div class=\"charts\">\n" + html + "</div>\n";
}

std::string html_of(const TextTable& text, std::string_view css_class = "") {
  return table(text.head, text.rows, css_class);
}

}  // namespace

std::string comparison_sections(const Comparison& comparison) {
  const TextTable keys = keys_table(comparison), seeds = seeds_table(comparison);
  std::string doubts;
  for (const RunRecord& run : comparison.runs) doubts += doubts_html(run.doubts);
  std::string html =
      section("compare-figures", "Final figures", doubts + html_of(figures_table(comparison), "figures"));
  if (!seeds.rows.empty()) {
    html += section(
        "compare-seeds", "Over seeds",
        note("Runs whose configurations are the same but for run.seed; the standard deviation is that of the "
             "sample (n - 1).") +
            html_of(seeds));
  }
  if (const std::string study = study_of_runs(comparison.runs); !study.empty()) {
    html +=
        section("compare-statistics", "Intervals and tests",
                note("Of the last score that all runs have; docs/statistics.md says what each column is.") +
                    "<pre>" + escape(study) + "</pre>\n");
  }
  html += section("compare-curves", "Curves", curves(comparison));
  html += section("compare-keys", "Keys that differ",
                  keys.rows.empty() ? note("No key differs, but for names and places of the runs.")
                                    : html_of(keys, "settings"));
  return html;
}

}  // namespace mulligan::report
