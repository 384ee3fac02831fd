#include "framework/ttt/ttt_saver.h"

#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"
#include "framework/core/stop_request.h"
#include "framework/run/resumable_evaluation.h"
#include "framework/ttt/ttt_report.h"

namespace mulligan {
namespace {

constexpr const char* standing_key = "standing";
constexpr const char* reference_name = "reference";
constexpr const char* windows_name = "windows_without";
constexpr const char* saved_losses_name = "losses";
constexpr const char* plain_losses_name = "plain_losses";
constexpr std::string_view tensor_prefix = "tensor/";

Json exact_json(const ScoreSums& sums) {
  return {{"loss_sum_nats", sums.loss_nats}, {"tokens", sums.tokens}, {"bytes", sums.bytes}};
}

ScoreSums read_sums(const Json& json) {
  if (json.is_null()) return {};
  return {json_number(json.at("loss_sum_nats")), json.at("tokens"), json.at("bytes")};
}

Comparison read_comparison(const Json& json) {
  if (json.is_null()) return {};
  return {read_sums(json.at("with")), read_sums(json.at("without"))};
}

TttBatchReport read_batch(const Json& json) {
  TttBatchReport batch;
  batch.queue = json.at("queue");
  batch.batch_index = json.at("batch");
  batch.documents = json.at("documents");
  batch.longest_tokens = json.at("longest_tokens");
  batch.sums = read_sums(json.at("score"));
  batch.running = read_sums(json.at("running"));
  batch.compared = read_comparison(json.at("compared"));
  batch.norms = read_norms(json.at("adapters"));
  batch.adapted = json.at("adapted");
  batch.seconds = json_number(json.at("seconds"));
  return batch;
}

TttPhaseReport read_phase(const Json& json) {
  TttPhaseReport phase;
  phase.phase = json.at("phase");
  phase.documents = json.at("documents");
  phase.tokens = json.at("tokens");
  phase.seconds = json_number(json.at("seconds"));
  for (const Json& step : json.at("steps")) {
    phase.steps.push_back({json_number(step.at("lr")), json_number(step.at("loss_nats")),
                           json_number(step.at("gradient_norm"))});
  }
  return phase;
}

Json standing_json(const TttStanding& standing) {
  Json batches = Json::array(), phases = Json::array(), pending = Json::array();
  for (const TttBatchReport& batch : standing.report.batches) batches.push_back(batch_json(batch));
  for (const TttPendingBatch& batch : standing.pending) pending.push_back(pending_json(batch));
  for (const TttPhaseReport& phase : standing.report.phases) phases.push_back(phase_json(phase));
  return {
      {"done", standing.done},
      {"sums", exact_json(standing.sums)},
      {"compared",
       {{"with", exact_json(standing.compared.with)}, {"without", exact_json(standing.compared.without)}}},
      {"untransformed", exact_json(standing.untransformed)},
      {"choices", standing.choices},
      {"collapsed_at", standing.report.collapsed_at},
      {"fell_back", standing.report.fell_back},
      {"batches", batches},
      {"pending", pending},
      {"phases", phases}};
}

TttStanding read_standing(const Json& json, const SafetensorsFile& file) {
  TttStanding standing;
  standing.done = json.at("done").get<std::vector<std::int64_t>>();
  standing.sums = read_sums(json.at("sums"));
  standing.compared = read_comparison(json.at("compared"));
  standing.untransformed = read_sums(json.at("untransformed"));
  standing.choices = json.at("choices");
  standing.report.collapsed_at = json.at("collapsed_at");
  standing.report.fell_back = json.at("fell_back");
  for (const Json& batch : json.at("batches")) standing.report.batches.push_back(read_batch(batch));
  for (const Json& batch : json.at("pending")) standing.pending.push_back(read_pending(batch));
  for (const Json& phase : json.at("phases")) standing.report.phases.push_back(read_phase(phase));
  standing.losses = file.at(saved_losses_name).copy<float>();
  if (file.find(plain_losses_name)) standing.plain_losses = file.at(plain_losses_name).copy<float>();
  for (const StoredTensor& tensor : file.tensors()) {
    if (!tensor.name.starts_with(tensor_prefix)) continue;
    standing.tensors[tensor.name.substr(tensor_prefix.size())] = {tensor.bytes.begin(), tensor.bytes.end()};
  }
  return standing;
}

StoredTensor stored(const char* name, const std::vector<float>& values) {
  return {
      name, StoredType::f32, {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))};
}

}  // namespace

void save_ttt(ScoreState& state, const TttProgress& progress, const PhaseSeconds& seconds) {
  Json json{{"reference_row", progress.reference_row}, {"reference_done", progress.reference_done}};
  std::vector<StoredTensor> tensors = {stored(reference_name, progress.reference)};
  if (!progress.windows.empty()) tensors.push_back(stored(windows_name, progress.windows));
  if (progress.standing) {
    const TttStanding& standing = *progress.standing;
    json[standing_key] = standing_json(standing);
    tensors.push_back(stored(saved_losses_name, standing.losses));
    if (!standing.plain_losses.empty()) tensors.push_back(stored(plain_losses_name, standing.plain_losses));
    for (const auto& [name, bytes] : standing.tensors) {
      tensors.push_back({std::string(tensor_prefix) + name,
                         StoredType::u8,
                         {static_cast<std::int64_t>(bytes.size())},
                         bytes});
    }
  }
  state.save(tensors, {{"ttt", json.dump()}}, seconds);
}

TttProgress read_ttt(const SafetensorsFile& file) {
  try {
    const Json json = parse_json<Json>(file.metadata().at("ttt"));
    TttProgress progress;
    progress.reference = file.at(reference_name).copy<float>();
    if (file.find(windows_name)) progress.windows = file.at(windows_name).copy<float>();
    progress.reference_row = json.at("reference_row");
    progress.reference_done = json.at("reference_done");
    if (json.contains(standing_key)) progress.standing = read_standing(json.at(standing_key), file);
    return progress;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw data_error("'{}' is not as mulligan writes it ({}); start without --resume.", file.path().string(),
                     error.what());
  }
}

namespace {

// Copies take at most one second of so many.
constexpr double shortest_gap = 50;

}  // namespace

void TttSaver::open(ScoreState::Options options) {
  state_.emplace(std::move(options));
  if (state_->found()) progress_ = read_ttt(*state_->found());
}

PhaseSeconds TttSaver::attempt_seconds() {
  const std::string now = clock_.enter("ttt_setup");  // books what has passed
  clock_.enter(now);
  PhaseSeconds seconds;
  for (const auto& [phase, amount] : clock_.phases()) seconds[phase] = amount;
  return seconds;
}

double TttSaver::seconds(const std::string& phase) {
  double seconds = attempt_seconds()[phase];
  if (!state_) return seconds;
  const auto earlier = state_->earlier_seconds().find(phase);
  return earlier == state_->earlier_seconds().end() ? seconds : seconds + earlier->second;
}

void TttSaver::passed() {
  unsaved_ = true;
  if (stop_signal() != 0) interrupted();
  if (!state_) return throw_if_stopping();
  if (state_->due()) save();
  state_->book(attempt_seconds());
}

void TttSaver::between_batches(const TttScorer& run) {
  if (!state_) return throw_if_stopping();
  const double now = steady_seconds();
  if (now - kept_at_ >= shortest_gap * keep_seconds_) {
    progress_.standing.reset();  // its memory
    progress_.standing = run.standing();
    unsaved_ = true;
    kept_at_ = steady_seconds();
    keep_seconds_ = kept_at_ - now;
  }
  between_chunks();
  if (unsaved_ && state_->due()) save();
}

void TttSaver::between_chunks() {
  if (!state_) return throw_if_stopping();
  if (stop_signal() != 0) interrupted();
  state_->book(attempt_seconds());
}

void TttSaver::interrupted() {
  if (!state_) return;
  if (unsaved_) save();
  throw stopped_error(*state_);
}

void TttSaver::save() {
  save_ttt(*state_, progress_, attempt_seconds());
  unsaved_ = false;
}

void TttSaver::finish() {
  if (state_) state_->finish();
}

}  // namespace mulligan
