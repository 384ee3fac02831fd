#include "framework/report/metrics_file.h"

#include <fmt/format.h>

#include "framework/core/json_file.h"
#include "framework/report/attention_record.h"
#include "framework/report/json_lines.h"
#include "framework/report/metrics_reader.h"
#include "framework/report/tensorboard.h"

namespace mulligan {

using Json = nlohmann::ordered_json;  // nlohmann writes numbers that are not finite as null

namespace {

// Keeps whole lines of events up to `step`.
void keep_events_until(const std::filesystem::path& path, std::int64_t step) {
  keep_json_lines(path, [&](const Json& event) {
    const std::string name = event_name(event);
    if (name == "memory") return false;  // every process reports its own plan
    // The evaluation at the end was not seen through, so it is made again.
    if (name == "validation" && event.value("phase", "") == "evaluate") return false;
    // Restarts and the start of a phase are told before the next step, so after the checkpoint.
    const bool before_step = name == "restart" || name == "phase_start" || name == "phase_switch";
    const std::int64_t last = before_step ? step - 1 : step;
    const auto at = event.find("step");
    return at == event.end() || (at->is_number_integer() && at->get<std::int64_t>() <= last);
  });
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, std::optional<std::int64_t> continue_after)
    : path_(path) {
  if (continue_after) keep_events_until(path, *continue_after);
  file_ = std::make_shared<JsonLinesWriter>(path, continue_after ? FileStart::append : FileStart::anew);
}

void MetricsFile::mirror_to(const std::filesystem::path& folder) {
  events_ = std::make_shared<TensorboardFile>(folder, read_metrics(path_));
}

void MetricsFile::write(const Json& event) {
  if (file_) file_->write(event.dump());
}

void MetricsFile::step(const StepRecord& record) {
  Json json{{"event", "step"},
            {"step", record.step},
            {"loss_nats", record.loss_nats},
            {"window", {record.window_first, record.window_last}},
            {"window_loss_nats", record.window_loss_nats},
            {"gradient_norm", record.gradient_norm},
            {"gradient_norm_of", object_of(record.group_gradient_norm)},
            {"lr", object_of(record.lr)},
            {"tokens", record.tokens},
            {"tokens_per_second", record.tokens_per_second},
            {"step_seconds", record.step_seconds},
            {"slowest_step_seconds", record.slowest_step_seconds},
            {"elapsed_seconds", record.elapsed_seconds},
            {"budget_fraction", record.budget_fraction},
            {"phase", record.phase},
            {"train_loss_run_nats", record.run_loss_nats},
            {"steps_counted", record.steps_counted},
            {"train_loss_phase_nats", object_of(record.phase_loss_nats)},
            {"train_loss_last_k",
             {{"nats", record.last_loss_nats}, {"window", {record.last_first, record.last_last}}}}};
  if (record.train_loss_hf) json["train_loss_hf"] = *record.train_loss_hf;
  if (!record.mix_share.empty()) json["mix_share"] = object_of(record.mix_share);
  if (record.noise_ratio) json["noise_ratio"] = *record.noise_ratio;
  if (record.loss_scale) json["loss_scale"] = *record.loss_scale;
  if (record.steps_skipped > 0 || record.loss_scale) json["steps_skipped"] = record.steps_skipped;
  write(json);
  if (events_) events_->add(record);
}

void MetricsFile::validation(const ValidationRecord& record) {
  Json json{{"event", "validation"}, {"step", record.step}, {"phase", record.phase}};
  add_score(json, record);
  if (events_) events_->add(record);
  write(json);
}

void MetricsFile::memory(const MemoryRecord& record) {
  write({{"event", "memory"},
         {"tensors_bytes", object_of(record.tensors_bytes)},
         {"programs_bytes", object_of(record.programs_bytes)},
         {"arena_bytes", record.arena_bytes}});
}

void MetricsFile::skipped_update(std::int64_t step, double loss_scale) {
  write({{"event", "skipped_update"}, {"step", step}, {"loss_scale", loss_scale}});
}

void MetricsFile::restart(std::int64_t step, const std::string& optimizer, std::int64_t cycle, double lr) {
  write({{"event", "restart"}, {"step", step}, {"optimizer", optimizer}, {"cycle", cycle}, {"lr", lr}});
}

void MetricsFile::phase_start(const PhaseRecord& record) {
  write({{"event", "phase_start"},
         {"step", record.step},
         {"phase", record.phase},
         {"way", record.way},
         {"budget_fraction", record.budget_fraction}});
}

void MetricsFile::phase_switch(const PhaseSwitchRecord& record) {
  Json json{{"event", "phase_switch"},
            {"step", record.step},
            {"from", record.from},
            {"to", record.to},
            {"lr_before", object_of(record.lr_before)},
            {"lr_after", object_of(record.lr_after)},
            {"optimizer_reset", record.optimizer_reset},
            {"state_sha256", record.state_sha256},
            {"probe_loss_nats", {record.loss_before_nats, record.loss_after_nats}},
            {"probe_delta_nats", record.loss_after_nats - record.loss_before_nats}};
  if (record.tolerance_nats) json["probe_tolerance_nats"] = *record.tolerance_nats;
  write(json);
}

void MetricsFile::attempt(std::int64_t step, const RunStart& start) {
  write({{"event", "attempt"},
         {"step", step},
         {"ranks", start.ranks},
         {"nodes", start.nodes},
         {"launcher", start.launcher},
         {"restarts", start.restarts}});
}

void MetricsFile::resume(std::int64_t step, const std::string& checkpoint) {
  write({{"event", "resume"}, {"step", step}, {"checkpoint", checkpoint}});
}

std::string attention_json(const AttentionRecord& record) {
  Json layers = Json::array();
  for (const AttentionLayerRecord& layer : record.layers) {
    Json json{{"slot", layer.slot},
              {"largest_logit", layer.largest_logit},
              {"repeated_rows", layer.repeated_rows},
              {"error_ulp", layer.error_ulp},
              {"error_standard_error_ulp", layer.error_standard_error_ulp}};
    if (layer.delta_error) json["delta_error"] = *layer.delta_error;
    if (layer.delta_norm) json["delta_norm"] = *layer.delta_norm;
    layers.push_back(std::move(json));
  }
  return Json{{"event", "attention"},
              {"step", record.step},
              {"rows", record.rows},
              {"layers", std::move(layers)},
              {"spectral_norm", object_of(record.spectral_norms)}}
      .dump();
}

void MetricsFile::attention(const AttentionRecord& record) {
  if (file_) file_->write(attention_json(record));
}

void MetricsFile::initial_loss(double loss_nats, double ln_vocabulary) {
  write({{"event", "initial_loss"}, {"loss_nats", loss_nats}, {"ln_vocabulary", ln_vocabulary}});
}

}  // namespace mulligan
