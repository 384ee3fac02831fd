#include "framework/ttt/ttt_report.h"

#include "framework/report/machine.h"
#include "framework/run/eval_json.h"
#include "framework/ttt/ttt_session.h"

namespace mulligan {
const char* check_word(TttCheck check) {
  return check == TttCheck::off ? "off" : check == TttCheck::full ? "full" : "sampled";
}

std::string TttChecks::text() const {
  if (mode == TttCheck::off) return "no chunk was checked (ttt.check = \"off\")";
  if (!repeats) return "no chunk was checked: the backend does not give the same bits twice";
  if (chunks == 0)
    return "no chunk was checked: none fits into 1 % of the cost; ttt.check = \"full\" checks all";
  return fmt::format(
      "{} of {} chunks were also scored with other tokens after {} cuts ({:.2f} % of the cost), and all scores "
      "before the cuts were the same to the bit",
      chunks, all_chunks, cuts, 100 * share);
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

Json comparison_json(const Comparison& compared) {
  if (compared.without.tokens == 0) return nullptr;
  return {{"with", sums_json(compared.with)}, {"without", sums_json(compared.without)}};
}

// The score transform, and what the same scores are without it.
Json transform_json(const TttResult& result) {
  if (result.transform.empty()) return nullptr;
  return {{"plugin", result.transform},
          {"text_order", result.transform_order},
          {"contested", result.contested},
          {"without", sums_json(result.report.untransformed)}};
}

Json checks_json(const TttChecks& checks) {
  return {{"check", check_word(checks.mode)}, {"chunks", checks.chunks},
          {"chunks_of", checks.all_chunks},   {"cuts", checks.cuts},
          {"share_of_cost", checks.share},    {"text", checks.text()}};
}

}  // namespace

Json batch_json(const TttBatchReport& batch) {
  return {{"queue", batch.queue},
          {"batch", batch.batch_index},
          {"documents", batch.documents},
          {"longest_tokens", batch.longest_tokens},
          {"score", sums_json(batch.sums)},
          {"running", sums_json(batch.running)},
          {"compared", comparison_json(batch.compared)},
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
          {"compared", comparison_json(bin.compared)}};
}

Json totals_json(const TttResult& result) {
  const TttReport& report = result.report;
  return {{"weights", result.weights},
          {"weights_sha256", result.weights_sha256},
          {"with_ttt", eval_json(result.with)},
          {"without_ttt", result.without ? eval_json(*result.without) : Json()},
          {"compared", comparison_json(report.compared)},
          {"evaluation", result.evaluation ? eval_json(*result.evaluation) : Json()},
          {"transform", transform_json(result)},
          {"device", result.device},
          {"instructions", instruction_set()},
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
  return json.dump(1) + "\n";
}

std::string invalid_ttt_json(const std::string& reason) {
  return Json({{"void", true}, {"reason", reason}}).dump(1) + "\n";
}

}  // namespace mulligan
