#include "lab/ensemble/score_ensemble.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "framework/core/printable.h"

namespace mulligan::ensemble {
namespace {

using Json = nlohmann::ordered_json;

Json figures(const EnsembleScore& score, const calibration::Calibration& c) {
  return {{"loss_nats", c.loss_nats},
          {"bpb", score.bpb(c.loss_nats)},
          {"accuracy", c.accuracy},
          {"confidence", c.confidence},
          {"ece", c.ece},
          {"brier", c.brier}};
}

}  // namespace

std::string ensemble_text(const EnsembleScore& score) {
  std::string text = fmt::format(
      "ambiguity {:.6f} nats (a member's mean loss less the ensemble's), disagreement {:.2f} % of predicted "
      "tokens\n",
      score.ambiguity_nats, 100 * score.disagreement);
  text += fmt::format("ensemble_loss {:.5f} nats{} over {} tokens: of several models, so no run's val_bpb\n",
                      score.ensemble.loss_nats,
                      score.bytes == 0
                          ? std::string(", no bits per byte without a tokenizer")
                          : fmt::format(", ensemble_bpb {:.5f}", score.bpb(score.ensemble.loss_nats)),
                      grouped(static_cast<std::int64_t>(score.tokens)));
  return text;
}

std::string ensemble_json(const EnsembleScore& score, const std::string& weights) {
  const MemberBytes& stored = score.stored;
  const Json json = {{"score", "ensemble"},
                     {"weights", weights},
                     {"plugin", score.plugin},
                     {"settings", score.settings},
                     {"members", score.members},
                     {"seed", score.seed},
                     {"tokens", score.tokens},
                     {"bytes", score.bytes},
                     {"packing", score.data.packing},
                     {"model", figures(score, score.centre)},
                     {"reference", figures(score, score.reference)},
                     {"ensemble", figures(score, score.ensemble)},
                     {"member_loss_nats", score.member_loss_nats},
                     {"member_accuracy", score.member_accuracy},
                     {"member_mean_loss_nats", score.mean_loss_nats},
                     {"ambiguity_nats", score.ambiguity_nats},
                     {"disagreement", score.disagreement},
                     {"changed_weights", stored.changed_weights},
                     {"member_bytes", stored.member},
                     {"kept_bytes", stored.kept},
                     {"all_bytes", stored.all(score.members)},
                     {"seconds", score.seconds}};
  return json.dump(1) + "\n";
}

}  // namespace mulligan::ensemble
