#include "framework/checkpoint/manifest.h"

#include "framework/core/error.h"
#include "framework/core/json_fields.h"
#include "framework/core/parse_json.h"

namespace mulligan {

using Json = nlohmann::ordered_json;

template <typename Fields>
void describe(Fields& f, LossSums& sums) {
  f("loss_sum_nats", sums.loss_sum_nats)("tokens", sums.tokens);
  f("step_loss_sum_nats", sums.step_loss_sum_nats)("steps_counted", sums.steps_counted);
}

template <typename Fields>
void describe(Fields& f, LossAccount::State& loss) {
  f("run", loss.run)("step_first", loss.step_first)("step_last", loss.step_last)("phases", loss.phases);
  f("last_step_losses_nats", loss.ring)("steps_skipped", loss.steps_skipped)("last_steps_skipped",
                                                                             loss.skipped);
}

template <typename Fields>
void describe(Fields& f, PartPosition& part) {
  f("shard_visits", part.shard_visits)("visit_spans", part.visit_spans)("spans", part.spans)("counted",
                                                                                             part.counted);
}

template <typename Fields>
void describe(Fields& f, CheckpointData& data) {
  LoaderPosition& at = data.position;
  f("consumed_spans", at.consumed_spans)("shard_visits", at.shard_visits)("visit_spans", at.visit_spans);
  f("row_tokens", data.row_tokens)("parts", at.parts);
}

template <typename Fields>
void describe(Fields& f, CheckpointProgress& p) {
  f("elapsed_seconds", p.elapsed_seconds)("step_seconds", p.step_seconds);
  f("reported_step", p.reported_step)("reported_at_seconds", p.reported_at_seconds);
  f("initial_loss_nats", p.initial_loss_nats)("phase", p.phase);
  f("cycles", p.cycles)("ledger_seconds", p.ledger_seconds)("restarts", p.restarts);
  f("phase_start_step", p.phase_start.step)("phase_start_fraction", p.phase_start.budget_fraction);
  f("phase_start_seconds", p.phase_start.elapsed_seconds)("phase_start_epoch", p.phase_start.epoch);
  f("optimizer_start_step", p.optimizer_start_step)("loss_scale", p.loss_scale.scale);
  f("clean_updates", p.loss_scale.clean_updates)("skipped_updates", p.loss_scale.skipped_updates);
  f("rewarm_start_step", p.rewarm.start)("rewarm_steps", p.rewarm.steps)("shares_validated",
                                                                         p.shares_validated);
}

template <typename Fields>
void describe(Fields& f, CheckpointFile& file) {
  f("name", file.name)("bytes", file.bytes)("sha256", file.sha256);
}

template <typename Fields>
void describe(Fields& f, CheckpointPlugin& plugin) {
  f("section", plugin.section)("kind", plugin.kind)("name", plugin.name);
  f("state_version", plugin.state_version)("sha256", plugin.sha256);
}

template <typename Fields>
void describe(Fields& f, CheckpointManifest& m) {
  f("step", m.step)("tokens", m.tokens)("run", m.run)("commit", m.commit)("instruction_set",
                                                                          m.instruction_set);
  f("seed", m.seed)("world_size", m.world_size)("ema_decay", m.ema_decay)("files", m.files)("plugins",
                                                                                            m.plugins);
  f("data", m.data)("progress", m.progress)("loss", m.loss)("config_sha256", m.config_sha256)("config",
                                                                                              m.config);
  f.custom(
      "identity", m.identity, [](const DataIdentity& identity) { return mulligan::to_json(identity); },
      [](const Json& json) { return data_identity_from_json(json, "the checkpoint manifest"); });
}

namespace {

constexpr const char* format_name = "mulligan checkpoint";

// Whether the skipped steps rise and lie among the last steps.
bool has_sound_ring(const LossAccount::State& loss) {
  const auto known = static_cast<std::int64_t>(loss.ring.size() + loss.skipped.size());
  std::int64_t least = loss.step_last - known;
  for (const std::int64_t step : loss.skipped) {
    if (step < least || step >= loss.step_last) return false;
    least = step + 1;
  }
  return true;
}

}  // namespace

std::string to_json(const CheckpointManifest& manifest) {
  Json json = {{"format", format_name}, {"format_version", checkpoint_format_version}};
  try {
    json.update(fields_to_json(manifest));
  } catch (const std::invalid_argument& error) {
    throw run_error("the checkpoint's {}.", error.what());
  }
  return json.dump(1) + "\n";
}

CheckpointManifest manifest_from_json(std::string_view text, const std::string& source) {
  const auto unusable = [&](const char* why) {
    return data_error("'{}' is not a checkpoint manifest{}; use another checkpoint.", source, why);
  };
  const Json json = parse_json<Json>(text);
  if (!json.is_object() || json.value("format", Json()) != format_name) throw unusable("");
  const Json version = json.value("format_version", Json());
  if (version != checkpoint_format_version) {
    throw data_error(
        "the checkpoint manifest '{}' has format version {}, but this program reads version {} only; use "
        "another checkpoint, or start the run anew.",
        source, version.dump(), checkpoint_format_version);
  }
  try {
    CheckpointManifest manifest = fields_from_json<CheckpointManifest>(json);
    if (has_sound_ring(manifest.loss)) return manifest;
  } catch (const std::invalid_argument& error) {
    throw unusable(fmt::format(": {}", error.what()).c_str());
  }
  throw unusable(": 'loss.last_steps_skipped' are not among the last steps of the losses, in order");
}

}  // namespace mulligan
