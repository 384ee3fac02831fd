#include "tools/report_page/ensemble_result.h"

#include "framework/core/json_file.h"

namespace mulligan::report {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> number_or_null(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

EnsembleResult::Figures figures_of(const Json& json) {
  return {json.at("loss_nats"), json.at("accuracy"), number_or_null(json.at("bpb")),
          number_or_null(json.at("ece"))};
}

}  // namespace

EnsembleResult read_ensemble_result(const std::filesystem::path& path) {
  return read_json_object<Json>(
      path,
      [](const Json& json) {
        EnsembleResult result;
        result.weights = json.at("weights");
        result.plugin = json.at("plugin");
        result.settings = json.at("settings");
        result.members = json.at("members");
        result.seed = json.at("seed");
        result.tokens = json.at("tokens");
        result.model = figures_of(json.at("model"));
        result.reference = figures_of(json.at("reference"));
        result.ensemble = figures_of(json.at("ensemble"));
        for (const Json& loss : json.at("member_loss_nats"))
          result.member_loss_nats.push_back(loss.get<double>());
        for (const Json& share : json.at("member_accuracy"))
          result.member_accuracy.push_back(share.get<double>());
        result.mean_loss_nats = json.at("member_mean_loss_nats");
        result.ambiguity_nats = json.at("ambiguity_nats");
        result.disagreement = json.at("disagreement");
        result.member_bytes = json.at("member_bytes");
        result.kept_bytes = json.at("kept_bytes");
        result.all_bytes = json.at("all_bytes");
        return result;
      },
      "make it again with mulligan probe ensemble, or remove it");
}

}  // namespace mulligan::report
