#include "tools/report_page/calibration_result.h"

#include "framework/core/json_file.h"

namespace mulligan::report {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> number_or_null(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

CalibrationResult::Figures figures_of(const Json& json) {
  return {json.at("name"),
          json.at("items"),
          json.at("accuracy"),
          json.at("confidence"),
          json.at("ece"),
          json.at("adaptive_ece"),
          json.at("mce"),
          json.at("brier"),
          json.at("loss_nats"),
          number_or_null(json.at("swagger")),
          number_or_null(json.at("swagger_gap"))};
}

CalibrationResult::Set set_of(const Json& json) {
  CalibrationResult::Set set{figures_of(json), {}, {}};
  for (const Json& bin : json.at("bins")) {
    set.bins.push_back(
        {bin.at("low"), bin.at("high"), bin.at("count"), bin.at("confidence"), bin.at("accuracy")});
  }
  for (const Json& subject : json.at("subjects")) set.subjects.push_back(figures_of(subject));
  return set;
}

}  // namespace

CalibrationResult read_calibration_result(const std::filesystem::path& path) {
  return read_json_object<Json>(
      path,
      [](const Json& json) {
        CalibrationResult result{json.at("weights"), {}};
        for (const Json& set : json.at("sets")) result.sets.push_back(set_of(set));
        return result;
      },
      "make it again with mulligan probe calibration, or remove it");
}

}  // namespace mulligan::report
