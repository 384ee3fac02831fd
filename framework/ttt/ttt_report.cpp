#include "framework/ttt/ttt_report.h"

#include <iterator>
#include <limits>

#include "framework/core/error.h"
#include "framework/core/sealed_json.h"
#include "framework/run/eval_json.h"
#include "framework/ttt/causality.h"
#include "framework/ttt/ttt_session.h"

namespace mulligan {
namespace {

constexpr const char* event_names[] = {"create", "reset", "score",    "book",    "reveal",
                                       "update", "phase", "collapse", "fallback"};

Json confinement_json(const Confinement& one) {
  return {{"no_files", one.files}, {"no_sockets", one.sockets}, {"missing", one.missing}};
}

Confinement read_confinement(const Json& json) {
  return {json.at("no_files"), json.at("no_sockets"), json.at("missing")};
}

}  // namespace

const char* event_name(TttEventKind kind) {
  return event_names[static_cast<int>(kind)];
}

TttChecks& TttChecks::operator+=(const TttChecks& other) {
  turns += other.turns;
  all_turns += other.all_turns;
  scores += other.scores;
  cuts += other.cuts;
  proposals += other.proposals;
  full = full && other.full;
  plugin_kernels = plugin_kernels || other.plugin_kernels;
  own_process = own_process && other.own_process;
  process = weaker(process, other.process);
  run = weaker(run, other.run);
  return *this;
}

std::string to_text(const TttMessage& message) {
  Json batches = Json::array(), events = Json::array();
  for (const TttPendingBatch& batch : message.batches) batches.push_back(pending_json(batch));
  for (const TttMessage::Event& event : message.events) {
    events.push_back(
        {static_cast<int>(event.kind), event.queue, event.batch_index, event.chunk, event.documents});
  }
  return Json{{"batches", batches},
              {"turns", message.checks.turns},
              {"all_turns", message.checks.all_turns},
              {"scores", message.checks.scores},
              {"cuts", message.checks.cuts},
              {"proposals", message.checks.proposals},
              {"full", message.checks.full},
              {"plugin_kernels", message.checks.plugin_kernels},
              {"own_process", message.checks.own_process},
              {"checking", confinement_json(message.checks.process)},
              {"scoring", confinement_json(message.checks.run)},
              {"void", message.void_reason},
              {"events", events}}
      .dump();
}

TttMessage read_ttt_message(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    TttMessage message;
    for (const Json& batch : json.at("batches")) message.batches.push_back(read_pending(batch));
    message.checks.turns = json.at("turns");
    message.checks.all_turns = json.at("all_turns");
    message.checks.scores = json.at("scores");
    message.checks.cuts = json.at("cuts");
    message.checks.proposals = json.at("proposals");
    message.checks.full = json.at("full");
    message.checks.plugin_kernels = json.at("plugin_kernels");
    message.checks.own_process = json.at("own_process");
    message.checks.process = read_confinement(json.at("checking"));
    message.checks.run = read_confinement(json.at("scoring"));
    message.void_reason = json.at("void");
    for (const Json& event : json.at("events")) {
      const int kind = event.at(0);
      if (kind < 0 || kind >= static_cast<int>(std::size(event_names))) throw run_error("event {}", kind);
      message.events.push_back({static_cast<TttEventKind>(kind), event.at(1), event.at(2), event.at(3),
                                event.at(4).get<std::vector<int>>()});
    }
    return message;
  } catch (const std::exception& error) {
    throw run_error("another rank of test-time training sent what is not a message ({}).", error.what());
  }
}

namespace {

Json sums_json(const ScoreSums& sums) {
  if (sums.tokens == 0) return nullptr;
  return {{"loss_sum_nats", sums.loss_nats},
          {"tokens", sums.tokens},
          {"bytes", sums.bytes},
          {"loss_nats", sums.mean_loss_nats()},
          {"bpb", sums.bpb()}};
}

Json norms_json(const std::vector<AdapterNorm>& norms) {
  Json json = Json::object();
  for (const AdapterNorm& norm : norms) json[norm.name] = {{"norm", norm.norm}, {"drift", norm.drift}};
  return json;
}

// The score transform, and what the same scores are without it.
Json transform_json(const TttResult& result) {
  if (result.transform.empty()) return nullptr;
  return {{"plugin", result.transform},
          {"text_order", result.transform_order},
          {"contested", result.contested},
          {"without", sums_json(result.report.untransformed)}};
}

// How the scores were checked, and what plugins could reach meanwhile.
Json checks_json(const TttChecks& checks) {
  return {{"seed", checks.seed},
          {"audit", checks.full ? "full" : "sampled"},
          {"plugin_kernels", checks.plugin_kernels},
          {"process", checks.own_process ? "own" : "same"},
          {"turns", checks.turns},
          {"turns_of", checks.all_turns},
          {"scores", checks.scores},
          {"cuts", checks.cuts},
          {"proposals", checks.proposals},
          {"found_with_99_percent",
           {{"one_score_in", found_one_in(checks.cuts)}, {"one_turn_in", found_one_in(checks.turns)}}},
          {"confined",
           {{"scoring", confinement_json(checks.run)}, {"checking", confinement_json(checks.process)}}}};
}

}  // namespace

double json_number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

std::vector<AdapterNorm> read_norms(const Json& json) {
  std::vector<AdapterNorm> norms;
  for (const auto& [name, norm] : json.items())
    norms.push_back({name, json_number(norm.at("norm")), json_number(norm.at("drift"))});
  return norms;
}

Json pending_json(const TttPendingBatch& batch) {
  return {{"queue", batch.queue},
          {"adapted", batch.adapted},
          {"seconds", batch.seconds},
          {"adapters", norms_json(batch.norms)}};
}

TttPendingBatch read_pending(const Json& json) {
  return {json.at("queue"), json.at("adapted"), json_number(json.at("seconds")),
          read_norms(json.at("adapters"))};
}

Json batch_json(const TttBatchReport& batch) {
  return {{"queue", batch.queue},
          {"batch", batch.batch_index},
          {"documents", batch.documents},
          {"longest_tokens", batch.longest_tokens},
          {"score", sums_json(batch.sums)},
          {"running", sums_json(batch.running)},
          {"running_without", sums_json(batch.reference)},
          {"adapters", norms_json(batch.norms)},
          {"adapted", batch.adapted},
          {"seconds", batch.seconds}};
}

Json phase_json(const TttPhaseReport& phase) {
  Json steps = Json::array();
  for (const BaseStep& step : phase.steps) {
    steps.push_back({{"lr", step.lr}, {"loss_nats", step.loss_nats}, {"gradient_norm", step.gradient_norm}});
  }
  return {{"phase", phase.phase},
          {"documents", phase.documents},
          {"tokens", phase.tokens},
          {"seconds", phase.seconds},
          {"steps", steps}};
}

Json length_bin_json(const TttLengthBin& bin) {
  return {{"shortest_tokens", bin.shortest},
          {"longest_tokens", bin.longest},
          {"documents", bin.documents},
          {"score", sums_json(bin.sums)},
          {"without", sums_json(bin.reference)}};
}

Json totals_json(const TttResult& result) {
  const TttReport& report = result.report;
  return {{"weights", result.weights},
          {"weights_sha256", result.weights_sha256},
          {"with_ttt", eval_json(result.with)},
          {"without_ttt", result.without ? eval_json(*result.without) : Json()},
          {"transform", transform_json(result)},
          {"setup_seconds", result.setup_seconds},
          {"peak_device_memory_bytes", result.peak_device_memory_bytes},
          {"documents", report.documents},
          {"lanes", report.lanes},
          {"ranks", report.ranks},
          {"collapsed_at_batch", report.collapsed_at < 0 ? Json() : Json(report.collapsed_at)},
          {"fell_back", report.fell_back},
          {"causality_check", checks_json(report.checks)}};
}

std::string ttt_json(const TttResult& result) {
  Json batches = Json::array(), phases = Json::array(), bins = Json::array();
  for (const TttBatchReport& batch : result.report.batches) batches.push_back(batch_json(batch));
  for (const TttPhaseReport& phase : result.report.phases) phases.push_back(phase_json(phase));
  for (const TttLengthBin& bin : result.report.bins) bins.push_back(length_bin_json(bin));
  Json json = totals_json(result);
  if (!result.made.empty()) json["made_on_device"] = to_json(result.made);
  json["data"] = to_json(result.with.data);
  json["length_bins"] = bins;
  json["phases"] = phases;
  json["batches"] = batches;
  return sealed(std::move(json)).dump(1) + "\n";
}

std::string void_ttt_json(const std::string& reason) {
  return sealed({{"void", true}, {"reason", reason}}).dump(1) + "\n";
}

}  // namespace mulligan
