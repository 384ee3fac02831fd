// What a folder of tries remembers: its files, and the tries as text and as a page.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "framework/core/printable.h"
#include "tools/report_page/chart.h"
#include "tools/report_page/html.h"
#include "tools/stats/markdown_table.h"
#include "tools/try/try.h"

namespace mulligan::tries {
namespace {

namespace fs = std::filesystem;

// Of results.tsv; the first five are autoresearch's.
const std::vector<std::string> columns = {"commit", "val_bpb", "memory_gb", "status",  "description",
                                          "delta",  "p",       "pairs",     "seconds", "digest"};

std::string text_of(const Json& record, const char* key) {
  return printable(record.value(key, ""));
}
std::string number_of(const Json& record, const char* key, const char* format, const char* absent = "") {
  return record.contains(key) ? fmt::format(fmt::runtime(format), record.at(key).get<double>()) : absent;
}

std::vector<std::string> cells_of(const Json& record) {
  return {text_of(record, "id"),
          number_of(record, "val_bpb", "{:.6f}", "0.000000"),
          fmt::format("{:.1f}", record.value("peak_memory_mb", 0.0) / 1000),
          text_of(record, "status"),
          text_of(record, "note"),
          number_of(record, "delta", "{:.6f}"),
          number_of(record, "p", "{:.4f}"),
          number_of(record, "pairs", "{:.0f}"),
          number_of(record, "run_seconds", "{:.1f}"),
          text_of(record, "config")};
}

}  // namespace

Memory::Memory(fs::path log) : log_(std::move(log)) {
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(log_ / "tries", absent)) {
    const fs::path file = entry.path() / "try.json";
    if (!fs::exists(file)) continue;
    const auto checked = [&](const Json& json) {
      json.at("number").get<int>(), json.at("status"), cells_of(json);
      if (json.at("id") != entry.path().filename().string()) throw std::runtime_error("another try's id");
      return json;
    };
    tries_.push_back(
        read_json_object<Json>(file, checked, "move its folder away, and the try is made again"));
  }
  std::ranges::sort(tries_, {}, [](const Json& json) { return json.at("number").get<int>(); });
  const fs::path table = log_ / "results.tsv";
  std::istringstream rows(fs::exists(table) ? read_file(table, kLargestDescription) : "");
  int line = 1;
  for (std::string row; std::getline(rows, row); ++line) {
    if (std::ranges::count(row, '\t') + 1 != std::ssize(columns))
      throw data_error(
          "'{}', line {}, is not a row of {} columns; repair it, or move the file away: it is then written anew.",
          table.string(), line, columns.size());
  }
}

const Json* Memory::find(const std::string& id) const {
  const auto found = std::ranges::find_if(tries_, [&](const Json& json) { return json.at("id") == id; });
  return found == tries_.end() ? nullptr : &*found;
}

void Memory::save(Json& record) {
  const std::string id = record.at("id");
  if (find(id) == nullptr) {
    record["number"] = tries_.empty() ? 0 : tries_.back().at("number").get<int>() + 1;
    tries_.push_back(record);
  }
  tries_[static_cast<std::size_t>(find(id) - tries_.data())] = record;
  write_file_atomically(folder(id) / "try.json", record.dump(1) + "\n");
  if (record.at("status") == "running") return;
  std::string table = fmt::format("{}\n", fmt::join(columns, "\t"));
  for (const Json& one : tries_)
    if (one.at("status") != "running") table += fmt::format("{}\n", fmt::join(cells_of(one), "\t"));
  write_file_atomically(log_ / "results.tsv", table);
}

double expected_false_keeps(const std::vector<Json>& tries) {
  double sum = 0;
  for (const Json& record : tries)
    for (const Json& look : record.value("looks", Json::array())) sum += look.at("alpha").get<double>();
  return sum;
}

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
  stats::Table table{{columns.begin(), columns.end() - 1}};
  int kept = 0, tested = 0;
  for (const Json& record : tries) {
    std::vector<std::string> cells = cells_of(record);
    cells.pop_back();
    if (const std::string why = text_of(record, "why"); !why.empty()) cells[4] += "; " + why;
    table.add(cells);
    tested += record.contains("delta") ? 1 : 0;
    kept += record.contains("delta") && record.at("status") == "keep" ? 1 : 0;
  }
  return table.text() +
         fmt::format(
             "{} of {} tested variants were kept; if none had an effect, {:.2f} would be kept by chance.\n",
             kept, tested, expected_false_keeps(tries));
}

std::string tries_page(const Memory& memory) {
  using report::Stroke;
  report::LineChart chart{"tries",
                          "Bits per byte over tries",
                          "Point at a try to read what it was.",
                          "try",
                          "val_bpb",
                          false,
                          {{"twice the base's standard deviation", {}, 6, Stroke::band},
                           {"best kept", {}, 2, Stroke::solid},
                           {"keep", {}, 2, Stroke::dots},
                           {"discard", {}, 6, Stroke::dots},
                           {"undecided", {}, 4, Stroke::dots}}};
  std::vector<report::Point>&band = chart.curves[0].points, &stairs = chart.curves[1].points;
  const double last = memory.tries().empty() ? 0 : memory.tries().back().at("number").get<double>();
  for (const Json& record : memory.tries()) {
    const std::string status = text_of(record, "status");
    const double x = record.at("number");
    if (!record.contains("val_bpb")) {
      chart.marks.push_back({x, status == "discard" ? "ended early" : status});
      continue;
    }
    const double value = record.at("val_bpb"), twice = 2 * record.value("deviation", 0.0);
    for (report::Curve& curve : chart.curves) {
      if (curve.name != status) continue;
      curve.points.push_back({x, value});
      curve.hover.push_back(fmt::format("{} {}: {} ({:.5f}{})", text_of(record, "id"), status,
                                        text_of(record, "note"), value,
                                        number_of(record, "delta", ", {:+.5f}")));
    }
    if (twice > 0)
      band = {{x, value - twice}, {x, value + twice}, {last, value + twice}, {last, value - twice}};
    if (status != "keep" || (!stairs.empty() && value >= stairs.back().y)) continue;
    if (!stairs.empty()) stairs.push_back({x, stairs.back().y});
    stairs.push_back({x, value});
  }
  if (!stairs.empty()) stairs.push_back({last, stairs.back().y});
  std::erase_if(chart.curves, [](const auto& curve) { return curve.points.empty(); });
  return report::page("Tries", "<code>" + report::escape(memory.log().string()) + "</code>",
                      report::draw(chart) +
                          report::section("all", "All tries",
                                          "<pre>" + report::escape(list_text(memory.tries())) + "</pre>\n"));
}

}  // namespace mulligan::tries
