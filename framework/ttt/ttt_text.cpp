#include "framework/ttt/ttt_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;  // nlohmann writes numbers that are not finite as null

// Bits per byte, or nats per token where bytes are not counted.
double score(const ScoreSums& sums) {
  return sums.bytes > 0 ? sums.bpb() : sums.mean_loss_nats();
}
const char* score_name(const ScoreSums& sums) {
  return sums.bytes > 0 ? "val_bpb" : "val_loss";
}

Json sums_json(const ScoreSums& sums) {
  if (sums.tokens == 0) return nullptr;
  return {{"loss_sum_nats", sums.loss_nats},
          {"tokens", sums.tokens},
          {"bytes", sums.bytes},
          {"loss_nats", sums.mean_loss_nats()},
          {"bpb", sums.bpb()}};
}

Json result_json(const EvalResult& result) {
  return {{"val_loss_nats", result.val_loss_nats},
          {"val_bpb", result.val_bpb},
          {"loss_sum_nats", result.loss_sum_nats},
          {"tokens", result.tokens},
          {"bytes", result.bytes},
          {"seconds", result.seconds}};
}

Json batch_json(const TttBatchReport& batch) {
  Json norms = Json::object();
  for (const AdapterNorm& norm : batch.norms) norms[norm.name] = {{"norm", norm.norm}, {"drift", norm.drift}};
  return {{"queue", batch.queue},
          {"batch", batch.batch_index},
          {"documents", batch.documents},
          {"longest_tokens", batch.longest_tokens},
          {"score", sums_json(batch.sums)},
          {"running", sums_json(batch.running)},
          {"running_without", sums_json(batch.reference)},
          {"adapters", norms},
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

}  // namespace

std::string batch_text(const TttBatchReport& batch, std::size_t batches) {
  std::string text = fmt::format("batch {} of {} ({} documents of up to {} tokens): running {} {:.5f}",
                                 batch.queue + 1, batches, batch.documents, batch.longest_tokens,
                                 score_name(batch.running), score(batch.running));
  if (batch.reference.tokens > 0) text += fmt::format(", without {:.5f}", score(batch.reference));
  for (const AdapterNorm& norm : batch.norms) {
    text += fmt::format(", |{}| {:.4g} drift {:.4g}", norm.name, norm.norm, norm.drift);
  }
  return batch.adapted ? text : text + ", adapters off";
}

std::string phase_text(const TttPhaseReport& phase) {
  std::string text = fmt::format("phase {}: base model trained on {} documents ({} tokens), {} steps",
                                 phase.phase, phase.documents, phase.tokens, phase.steps.size());
  if (!phase.steps.empty()) {
    text +=
        fmt::format(", loss {:.5f} -> {:.5f}", phase.steps.front().loss_nats, phase.steps.back().loss_nats);
  }
  return text + fmt::format(", {:.1f} s", phase.seconds);
}

std::string bins_text(const TttReport& report) {
  std::string text = fmt::format("{:>17} {:>10} {:>10} {:>12}", "document tokens", "documents", "tokens",
                                 score_name(report.sums));
  if (report.reference.tokens > 0) text += fmt::format(" {:>10} {:>10}", "without", "gain");
  for (const TttLengthBin& bin : report.bins) {
    text +=
        fmt::format("\n{:>17} {:>10} {:>10} {:>12.5f}", fmt::format("{} to {}", bin.shortest, bin.longest),
                    bin.documents, bin.sums.tokens, score(bin.sums));
    if (bin.reference.tokens > 0) {
      text +=
          fmt::format(" {:>10.5f} {:>10.5f}", score(bin.reference), score(bin.reference) - score(bin.sums));
    }
  }
  return text;
}

std::string ttt_json(const TttResult& result) {
  Json batches = Json::array(), phases = Json::array(), bins = Json::array();
  for (const TttBatchReport& batch : result.report.batches) batches.push_back(batch_json(batch));
  for (const TttPhaseReport& phase : result.report.phases) phases.push_back(phase_json(phase));
  for (const TttLengthBin& bin : result.report.bins) {
    bins.push_back({{"shortest_tokens", bin.shortest},
                    {"longest_tokens", bin.longest},
                    {"documents", bin.documents},
                    {"score", sums_json(bin.sums)},
                    {"without", sums_json(bin.reference)}});
  }
  const Json json = {
      {"with_ttt", result_json(result.with)},
      {"without_ttt", result_json(result.without)},
      {"setup_seconds", result.setup_seconds},
      {"documents", result.report.documents},
      {"collapsed_at_batch", result.report.collapsed_at < 0 ? Json() : Json(result.report.collapsed_at)},
      {"fell_back", result.report.fell_back},
      {"length_bins", bins},
      {"phases", phases},
      {"batches", batches}};
  return json.dump(1) + "\n";
}

}  // namespace mulligan
