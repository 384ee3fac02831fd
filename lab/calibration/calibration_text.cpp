#include "lab/calibration/compare_items.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "framework/core/json_file.h"

namespace mulligan::calibration {
namespace {

using Json = nlohmann::ordered_json;

std::string figure(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

Json bins_json(const std::vector<Bin>& bins) {
  Json json = Json::array();
  for (const Bin& bin : bins) {
    json.push_back({{"low", bin.low},
                    {"high", bin.high},
                    {"count", bin.count},
                    {"confidence", bin.confidence},
                    {"accuracy", bin.accuracy}});
  }
  return json;
}

Json figures_json(const Calibration& c) {
  return {{"items", c.count},
          {"wrong", c.wrong},
          {"accuracy", c.accuracy},
          {"confidence", c.confidence},
          {"ece", c.ece},
          {"adaptive_ece", c.adaptive_ece},
          {"mce", c.mce},
          {"brier", c.brier},
          {"loss_nats", c.loss_nats},
          {"swagger", value_or_null<Json>(c.swagger)},
          {"swagger_gap", value_or_null<Json>(c.swagger_gap)}};
}

std::string figures_row(const std::string& name, const Calibration& c) {
  return fmt::format(
      "{:<28} {:>9} {:>9.4f} {:>10.4f} {:>8.4f} {:>8.4f} {:>8.4f} {:>8.4f} {:>9.4f} {:>8} {:>8}\n", name,
      c.count, c.accuracy, c.confidence, c.ece, c.adaptive_ece, c.mce, c.brier, c.loss_nats,
      figure(c.swagger), figure(c.swagger_gap));
}

}  // namespace

std::string calibration_text(const std::vector<ItemSet>& sets, int bins) {
  std::string text =
      fmt::format("{:<28} {:>9} {:>9} {:>10} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8} {:>8}\n", "", "items",
                  "accuracy", "confidence", "ECE", "adaptive", "MCE", "Brier", "nats", "swagger", "gap");
  for (const ItemSet& set : sets) {
    const Calibration c = calibrate_items(set.items, bins);
    text += figures_row(set.name, c);
    for (const auto& [subject, of_subject] : calibrate_subjects(set.items, bins))
      text += figures_row("  " + (subject.empty() ? std::string("(none)") : subject), of_subject);
  }
  for (const ItemSet& set : sets) {
    text += fmt::format("\n{}: confidence and how often it was right\n", set.name);
    for (const Bin& bin : calibrate_items(set.items, bins).bins) {
      if (bin.count == 0) continue;
      text += fmt::format("({:.3f}, {:.3f}] {:>9} items, confidence {:.4f}, right {:.4f}\n", bin.low,
                          bin.high, bin.count, bin.confidence, bin.accuracy);
    }
  }
  return text;
}

std::string calibration_json(const std::vector<ItemSet>& sets, const std::string& weights, int bins) {
  Json all = Json::array();
  for (const ItemSet& set : sets) {
    const Calibration c = calibrate_items(set.items, bins);
    Json json = {{"name", set.name}, {"kind", set.questions ? "questions" : "tokens"}};
    json.update(figures_json(c));
    json["bins"] = bins_json(c.bins);
    json["adaptive_bins"] = bins_json(c.adaptive_bins);
    Json subjects = Json::array();
    for (const auto& [subject, of_subject] : calibrate_subjects(set.items, bins)) {
      Json row = {{"name", subject}};
      row.update(figures_json(of_subject));
      subjects.push_back(row);
    }
    json["subjects"] = subjects;
    all.push_back(json);
  }
  return Json{{"weights", weights}, {"sets", all}}.dump(1) + "\n";
}

}  // namespace mulligan::calibration
