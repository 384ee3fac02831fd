// Tries as text, and as a page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/core/printable.h"
#include "tools/report_page/chart.h"
#include "tools/report_page/html.h"
#include "tools/stats/markdown_table.h"
#include "tools/try/try.h"

namespace mulligan::tries {
namespace {

std::string text_of(const Json& record, const char* key) {
  return printable(record.value(key, ""));
}
std::string number_of(const Json& record, const char* key, const char* format) {
  return record.contains(key) ? fmt::format(fmt::runtime(format), record.at(key).get<double>()) : "";
}

}  // namespace

std::string result_lines(const Json& record) {
  std::string text = "---\n", how = text_of(record, "why");
  if (record.contains("delta")) {
    constexpr std::pair<const char*, const char*> lines[] = {
        {"val_bpb", "{:.6f}"},      {"training_seconds", "{:.1f}"}, {"total_seconds", "{:.1f}"},
        {"peak_vram_mb", "{:.1f}"}, {"peak_memory_mb", "{:.1f}"},   {"num_steps", "{:.0f}"},
        {"num_params_M", "{:.1f}"}};
    for (const auto& [key, format] : lines)
      text += fmt::format("{:<17} {}\n", fmt::format("{}:", key), number_of(record, key, format));
    how = number_of(record, "delta", "{:+.4f}") + number_of(record, "error", " +- {:.4f}") +
          number_of(record, "p", ", p {:.3g}") + number_of(record, "pairs", ", {:.0f} pairs");
  }
  return text + fmt::format("{:<17} {} ({})\n", "verdict:", text_of(record, "status"), how);
}

std::string list_text(std::vector<Json> tries) {
  std::ranges::stable_sort(tries, {}, [](const Json& record) { return record.value("val_bpb", HUGE_VAL); });
  stats::MarkdownTable table(
      {"try", "status", "val_bpb", "delta", "p", "pairs", "seconds", "what was tried"});
  int kept = 0, tested = 0;
  for (const Json& record : tries) {
    const std::string status = text_of(record, "status"), why = text_of(record, "why");
    table.add({text_of(record, "id"), status, number_of(record, "val_bpb", "{:.5f}"),
               number_of(record, "delta", "{:+.5f}"), number_of(record, "p", "{:.4f}"),
               number_of(record, "pairs", "{:.0f}"), number_of(record, "run_seconds", "{:.0f}"),
               text_of(record, "note") + (why.empty() ? "" : "; " + why)});
    tested += record.contains("delta") ? 1 : 0;
    kept += record.contains("delta") && status == "keep" ? 1 : 0;
  }
  return table.text() +
         fmt::format(
             "{} of {} tested variants were kept; if none had an effect, {:.2f} would be kept by chance.\n",
             kept, tested, expected_false_keeps(tries));
}

std::string tries_page(const Memory& memory) {
  using report::Stroke;
  report::LineChart chart{.id = "tries",
                          .title = "Bits per byte over tries",
                          .about = "Point at a try to read what it was.",
                          .x_label = "try",
                          .y_label = "val_bpb",
                          .curves = {},
                          .marks = {}};
  report::Curve band{"twice the base's standard deviation", {}, 6, Stroke::band};
  report::Curve stairs{"best kept", {}, 2, Stroke::solid};
  std::vector<report::Curve> dots = {
      {"keep", {}, 2, Stroke::dots}, {"discard", {}, 6, Stroke::dots}, {"undecided", {}, 4, Stroke::dots}};
  double best = HUGE_VAL;
  const double last = memory.tries().empty() ? 0 : memory.tries().back().at("number").get<double>();
  for (const Json& record : memory.tries()) {
    const std::string status = text_of(record, "status");
    const double x = record.at("number"), value = record.value("val_bpb", HUGE_VAL);
    if (!std::isfinite(value)) chart.marks.push_back({x, status == "discard" ? "ended early" : status});
    for (report::Curve& curve : dots) {
      if (curve.name != status || !std::isfinite(value)) continue;
      curve.points.push_back({x, value});
      curve.hover.push_back(fmt::format("{} {}: {} ({:.5f}{})", text_of(record, "id"), status,
                                        text_of(record, "note"), value,
                                        number_of(record, "delta", ", {:+.5f}")));
    }
    if (record.contains("deviation")) {
      const double twice = 2 * record.at("deviation").get<double>();
      band.points = {{x, value - twice}, {x, value + twice}, {last, value + twice}, {last, value - twice}};
    }
    if (status != "keep" || value >= best) continue;
    if (!stairs.points.empty()) stairs.points.push_back({x, best});
    stairs.points.push_back({x, best = value});
  }
  if (!stairs.points.empty()) stairs.points.push_back({last, best});
  chart.curves = {band, stairs};
  std::ranges::copy_if(dots, std::back_inserter(chart.curves),
                       [](const auto& curve) { return !curve.points.empty(); });
  const std::string list = "<pre>" + report::escape(list_text(memory.tries())) + "</pre>\n";
  return report::page("Tries", "<code>" + report::escape(memory.log().string()) + "</code>",
                      report::draw(chart) + report::section("all", "All tries", list));
}

}  // namespace mulligan::tries
