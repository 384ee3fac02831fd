#include "lab/ensemble/score_ensemble.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "framework/core/printable.h"
#include "framework/core/statistic.h"

namespace mulligan::ensemble {
namespace {

using Json = nlohmann::ordered_json;

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.5f}", value) : "-";
}

std::string row(const EnsembleScore& score, const std::string& name, double nats, double accuracy,
                const std::optional<double>& ece, std::uint64_t bytes) {
  return fmt::format("{:<18} {:>10} {:>10} {:>10} {:>8} {:>16}\n", name, number(nats),
                     number(score.bpb(nats)), number(accuracy), ece ? fmt::format("{:.4f}", *ece) : "-",
                     grouped(static_cast<std::int64_t>(bytes)));
}

std::uint64_t plain_bytes(const MemberBytes& stored) {
  return stored.kept + sizeof(float) * static_cast<std::uint64_t>(stored.changed_weights);
}

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
  const Statistic losses = statistic_of(score.member_loss_nats);
  const Statistic accuracy = statistic_of(score.member_accuracy);
  const MemberBytes& stored = score.stored;
  std::string text = fmt::format("{:<18} {:>10} {:>10} {:>10} {:>8} {:>16}\n", "ensemble of a model", "nats",
                                 "bpb", "accuracy", "ECE", "bytes, stored");
  text += row(score, "the model", score.centre.loss_nats, score.centre.accuracy, score.centre.ece,
              plain_bytes(stored));
  text += row(score, "reference", score.reference.loss_nats, score.reference.accuracy, score.reference.ece,
              stored.all(1));
  text += row(score, "a member, mean", score.mean_loss_nats, accuracy.mean, std::nullopt, stored.all(1));
  text += row(score, fmt::format("ensemble of {}", score.members), score.ensemble.loss_nats,
              score.ensemble.accuracy, score.ensemble.ece, stored.all(score.members));
  text += fmt::format("members differ by {} nats (standard deviation)\n",
                      losses.deviation ? fmt::format("{:.5f}", *losses.deviation) : "-");
  text += fmt::format(
      "ambiguity {:.6f} nats (a member's mean loss less the ensemble's), disagreement {:.2f} % of predicted "
      "tokens\n",
      score.ambiguity_nats, 100 * score.disagreement);
  text += fmt::format(
      "{} weights rounded to {} bytes a member, {} kept in fp32; in memory "
      "is one member at a time, the others are made anew from seed {}\n",
      grouped(stored.changed_weights), grouped(static_cast<std::int64_t>(stored.member)),
      grouped(stored.kept_weights), score.seed);
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
