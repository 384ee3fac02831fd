// The JSON forms of test-time training: one list of members for both directions. Doubles keep their bits; what is not
// finite becomes null, which is read as NaN.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "framework/ttt/ttt_report.h"

namespace mulligan {

using Json = nlohmann::ordered_json;

#define MULLIGAN_JSON(Type, ...)                                               \
  inline void to_json(Json& nlohmann_json_j, const Type& nlohmann_json_t) {    \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, __VA_ARGS__))   \
  }                                                                            \
  inline void from_json(const Json& nlohmann_json_j, Type& nlohmann_json_t) {  \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_FROM, __VA_ARGS__)) \
  }

// In the audit log.
template <>
inline constexpr auto config_words<TttEventKind> = std::array{
    "create", "reset", "score", "book", "plan", "reveal", "update", "phase", "collapse", "fallback"};

inline void to_json(Json& json, const ScoreSums& sums) {
  if (sums.tokens == 0) return;  // null
  json = {{"loss_sum_nats", sums.loss_nats},
          {"tokens", sums.tokens},
          {"bytes", sums.bytes},
          {"loss_nats", sums.mean_loss_nats()},
          {"bpb", sums.bpb()}};
}

inline void from_json(const Json& json, ScoreSums& sums) {
  sums = {};
  if (!json.is_null()) sums = {json.at("loss_sum_nats"), json.at("tokens"), json.at("bytes")};
}

inline void to_json(Json& json, const Comparison& compared) {
  if (compared.without.tokens > 0) json = {{"with", compared.with}, {"without", compared.without}};
}

inline void from_json(const Json& json, Comparison& compared) {
  compared = {};
  if (!json.is_null()) compared = {json.at("with"), json.at("without")};
}

inline void to_json(Json& json, const std::vector<AdapterNorm>& norms) {
  json = Json::object();
  for (const AdapterNorm& norm : norms) json[norm.name] = {{"norm", norm.norm}, {"drift", norm.drift}};
}

inline double read_number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

inline void from_json(const Json& json, std::vector<AdapterNorm>& norms) {
  for (const auto& [name, norm] : json.items())
    norms.push_back({name, read_number(norm.at("norm")), read_number(norm.at("drift"))});
}

inline void to_json(Json& json, const BaseStep& step) {
  json = {{"lr", step.lr}, {"loss_nats", step.loss_nats}, {"gradient_norm", step.gradient_norm}};
}

inline void from_json(const Json& json, BaseStep& step) {
  step = {json.at("lr"), read_number(json.at("loss_nats")), read_number(json.at("gradient_norm"))};
}

MULLIGAN_JSON(TttBatchReport, queue, batch, documents, longest_tokens, score, running, compared, adapters,
              adapted, seconds)
MULLIGAN_JSON(TttPhaseReport, phase, documents, tokens, seconds, steps)
MULLIGAN_JSON(TttLengthBin, shortest_tokens, longest_tokens, documents, score, compared)
MULLIGAN_JSON(TttEvent, kind, queue, batch, chunk, documents, chosen)
MULLIGAN_JSON(TttReport, compared, untransformed, batches, phases, collapsed_at, fell_back)
MULLIGAN_JSON(TttStanding, done, report, pending, choices)

}  // namespace mulligan
