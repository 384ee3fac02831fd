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

}  // namespace

std::string calibration_json(const std::vector<ItemSet>& sets, const std::string& weights) {
  Json all = Json::array();
  for (const ItemSet& set : sets) {
    const Calibration c = calibrate_items(set.items);
    Json json = {{"name", set.name}, {"kind", set.questions ? "questions" : "tokens"}};
    json.update(figures_json(c));
    json["bins"] = bins_json(c.bins);
    json["adaptive_bins"] = bins_json(c.adaptive_bins);
    Json subjects = Json::array();
    for (const auto& [subject, of_subject] : calibrate_subjects(set.items)) {
      Json row = {{"name", subject}};
      row.update(figures_json(of_subject));
      subjects.push_back(row);
    }
    json["subjects"] = subjects;
    all.push_back(json);
  }
  return Json{{"weights", weights}, {"sets", all}}.dump(1) + "\n";
}

std::string comparison_text(const std::vector<SetComparison>& sets, const std::vector<std::string>& names) {
  std::string text;
  for (const SetComparison& set : sets) {
    const Consistency& c = set.consistency;
    text += fmt::format("{}: {} items, {} runs\n", set.name, c.most_common.size(), names.size());
    text += fmt::format("consistency {:.5f} (mean share of the commonest answer), pairwise agreement {:.5f}",
                        c.mean_most_common, c.pairwise);
    text += c.first_divergence ? fmt::format(", first differing item {}\n", *c.first_divergence + 1)
                               : std::string(", no item differs\n");
    text += fmt::format("{:<28} {:>8} {:>9} {:>9} {:>11} {:>11} {:>9} {:>9}\n", "subject", "items", "first",
                        "other", "only first", "only other", "p", "Holm");
    for (const SubjectComparison& row : set.subjects) {
      if (row.subject == "all")
        text += fmt::format("'{}' against '{}', McNemar's exact test:\n", names[row.run], names[0]);
      text += fmt::format("{:<28} {:>8} {:>9.4f} {:>9.4f} {:>11} {:>11} {:>9.4g} {:>9.4g}\n",
                          row.subject.empty() ? "(none)" : row.subject, row.items, row.first_accuracy,
                          row.other_accuracy, row.only_first, row.only_other, row.p, row.holm_p);
    }
    text +=
        fmt::format("risk: {} of {} items flagged, {} of them wrong; precision {}, recall {} of {} wrong\n\n",
                    set.risks.ids.size(), c.most_common.size(), set.risks.flagged_wrong,
                    figure(set.risks.precision), figure(set.risks.recall), set.risks.wrong);
  }
  return text;
}

std::string comparison_json(const std::vector<SetComparison>& sets, const std::vector<std::string>& names) {
  Json all = Json::array();
  for (const SetComparison& set : sets) {
    Json rows = Json::array();
    for (const SubjectComparison& row : set.subjects) {
      rows.push_back({{"run", names[row.run]},
                      {"subject", row.subject},
                      {"items", row.items},
                      {"first_accuracy", row.first_accuracy},
                      {"other_accuracy", row.other_accuracy},
                      {"only_first", row.only_first},
                      {"only_other", row.only_other},
                      {"p", row.p},
                      {"holm_p", row.holm_p}});
    }
    all.push_back({{"name", set.name},
                   {"items", set.consistency.most_common.size()},
                   {"consistency", set.consistency.mean_most_common},
                   {"pairwise", set.consistency.pairwise},
                   {"first_divergence", value_or_null<Json>(set.consistency.first_divergence)},
                   {"subjects", rows},
                   {"risk",
                    {{"ids", set.risks.ids},
                     {"flagged_wrong", set.risks.flagged_wrong},
                     {"wrong", set.risks.wrong},
                     {"precision", value_or_null<Json>(set.risks.precision)},
                     {"recall", value_or_null<Json>(set.risks.recall)}}}});
  }
  return Json{{"runs", names}, {"sets", all}}.dump(1) + "\n";
}

}  // namespace mulligan::calibration
