#include "framework/checkpoint/manifest.h"

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;

// Both directions of one key are stated once: a Writer and a Reader have the same interface, and `describe`
// below names every key with its member.
class Writer {
 public:
  Json json = Json::object();

  void number(const char* key, double& value) {
    if (!std::isfinite(value))
      throw run_error("the checkpoint's '{}' is {}, which is not a number.", key, value);
    json[key] = value;
  }
  void count(const char* key, std::int64_t& value) { json[key] = value; }
  void count(const char* key, std::uint64_t& value) { json[key] = value; }
  void text(const char* key, std::string& value) { json[key] = value; }
  template <typename T, typename Describe>
  void object(const char* key, T& value, Describe&& describe) {
    Writer inner;
    describe(inner, value);
    json[key] = std::move(inner.json);
  }
  template <typename T, typename Describe>
  void list(const char* key, std::vector<T>& values, Describe&& describe) {
    Json rows = Json::array();
    for (T& value : values) {
      Writer inner;
      describe(inner, value);
      rows.push_back(std::move(inner.json));
    }
    json[key] = std::move(rows);
  }
  void identity(const char* key, DataIdentity& value) { json[key] = mulligan::to_json(value); }
  void counts(const char* key, std::vector<std::int64_t>& values) { json[key] = values; }
  void numbers(const char* key, std::vector<double>& values) {
    for (double& value : values) number(key, value);
    json[key] = values;
  }
};

class Reader {
 public:
  Reader(const Json& json, std::string path, const std::string& source)
      : json_(json), path_(std::move(path)), source_(source) {}

  void number(const char* key, double& value) {
    const Json& found = at(key);
    if (!found.is_number()) throw wrong(key, "a number");
    value = found.get<double>();
    if (!std::isfinite(value)) throw wrong(key, "a finite number");
  }
  void count(const char* key, std::int64_t& value) {
    std::uint64_t read = 0;
    count(key, read);
    if (read > static_cast<std::uint64_t>(INT64_MAX)) throw wrong(key, "a count below 2^63");
    value = static_cast<std::int64_t>(read);
  }
  void count(const char* key, std::uint64_t& value) {
    const Json& found = at(key);
    if (!found.is_number_unsigned()) throw wrong(key, "a count of 0 or more");
    value = found.get<std::uint64_t>();
  }
  void text(const char* key, std::string& value) {
    const Json& found = at(key);
    if (!found.is_string()) throw wrong(key, "a string");
    value = found.get<std::string>();
  }
  template <typename T, typename Describe>
  void object(const char* key, T& value, Describe&& describe) {
    const Json& found = at(key);
    if (!found.is_object()) throw wrong(key, "an object");
    Reader inner(found, path_ + key + ".", source_);
    describe(inner, value);
  }
  template <typename T, typename Describe>
  void list(const char* key, std::vector<T>& values, Describe&& describe) {
    const Json& found = at(key);
    if (!found.is_array()) throw wrong(key, "a list");
    for (const Json& row : found) {
      if (!row.is_object()) throw wrong(key, "a list of objects");
      Reader inner(row, path_ + key + ".", source_);
      describe(inner, values.emplace_back());
    }
  }
  void identity(const char* key, DataIdentity& value) {
    value = data_identity_from_json(at(key), "'" + source_ + "'");
  }
  void counts(const char* key, std::vector<std::int64_t>& values) {
    const Json& found = at(key);
    const auto sound = [](const Json& value) {
      return value.is_number_unsigned() &&
             value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX);
    };
    if (!found.is_array() || !std::ranges::all_of(found, sound)) throw wrong(key, "a list of counts");
    for (const Json& value : found) values.push_back(value.get<std::int64_t>());
  }
  void numbers(const char* key, std::vector<double>& values) {
    const Json& found = at(key);
    if (!found.is_array()) throw wrong(key, "a list of numbers");
    for (const Json& value : found) {
      if (!value.is_number() || !std::isfinite(value.get<double>())) throw wrong(key, "a list of numbers");
      values.push_back(value.get<double>());
    }
  }

 private:
  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) {
      throw data_error(
          "'{}' is not a checkpoint manifest: the key '{}{}' is missing; use another checkpoint.", source_,
          path_, key);
    }
    return *found;
  }
  Error wrong(const char* key, const char* expected) const {
    return data_error("'{}' is not a checkpoint manifest: '{}{}' is not {}; use another checkpoint.", source_,
                      path_, key, expected);
  }

  const Json& json_;
  std::string path_;
  const std::string& source_;
};

template <typename Visitor>
void describe_sums(Visitor& v, LossSums& sums) {
  v.number("loss_sum_nats", sums.loss_sum_nats);
  v.count("tokens", sums.tokens);
  v.number("step_loss_sum_nats", sums.step_loss_sum_nats);
  v.count("steps_counted", sums.steps_counted);
}

template <typename Visitor>
void describe_loss(Visitor& v, LossAccount::State& loss) {
  describe_sums(v, loss.run);
  v.count("step_first", loss.step_first);
  v.count("step_last", loss.step_last);
  v.list("phases", loss.phases, [](auto& row, auto& phase) {
    row.text("phase", phase.first);
    describe_sums(row, phase.second);
  });
  v.numbers("last_step_losses_nats", loss.ring);
  v.count("steps_skipped", loss.steps_skipped);
  v.counts("last_steps_skipped", loss.skipped);
}

template <typename Visitor>
void describe_data(Visitor& v, CheckpointData& data) {
  v.count("consumed_spans", data.consumed_spans);
  v.count("shard_visits", data.shard_visits);
  v.count("visit_spans", data.visit_spans);
  v.count("row_tokens", data.row_tokens);
  v.list("shards", data.shards, [](auto& row, CheckpointShard& shard) {
    row.text("name", shard.name);
    row.count("tokens", shard.tokens);
  });
  v.list("parts", data.parts, [](auto& row, PartPosition& part) {
    row.count("shard_visits", part.shard_visits);
    row.count("visit_spans", part.visit_spans);
    row.count("spans", part.spans);
    row.count("counted", part.counted);
  });
}

template <typename Visitor>
void describe_progress(Visitor& v, CheckpointProgress& progress) {
  v.number("elapsed_seconds", progress.elapsed_seconds);
  v.number("step_seconds", progress.step_seconds);
  v.count("reported_step", progress.reported_step);
  v.number("reported_at_seconds", progress.reported_at_seconds);
  v.number("initial_loss_nats", progress.initial_loss_nats);
  v.text("phase", progress.phase);
  v.list("cycles", progress.cycles, [](auto& row, auto& cycle) {
    row.text("optimizer", cycle.first);
    row.count("cycle", cycle.second);
  });
  v.list("ledger", progress.ledger_seconds, [](auto& row, auto& phase) {
    row.text("phase", phase.first);
    row.number("seconds", phase.second);
  });
  v.count("restarts", progress.restarts);
  v.count("phase_start_step", progress.phase_start_step);
  v.number("phase_start_fraction", progress.phase_start_fraction);
  v.number("phase_start_seconds", progress.phase_start_seconds);
  v.number("phase_start_epoch", progress.phase_start_epoch);
  v.count("optimizer_start_step", progress.optimizer_start_step);
  v.number("loss_scale", progress.loss_scale);
  v.count("clean_updates", progress.clean_updates);
  v.count("skipped_updates", progress.skipped_updates);
  v.count("rewarm_start_step", progress.rewarm_start_step);
  v.count("rewarm_steps", progress.rewarm_steps);
  v.count("shares_validated", progress.shares_validated);
  v.count("metrics_records", progress.metrics_records);
  v.text("metrics_sha256", progress.metrics_sha256);
}

template <typename Visitor>
void describe(Visitor& v, CheckpointManifest& m) {
  v.count("step", m.step);
  v.count("tokens", m.tokens);
  v.text("run", m.run);
  v.text("commit", m.commit);
  v.text("instruction_set", m.instruction_set);
  v.count("seed", m.seed);
  v.count("world_size", m.world_size);
  v.number("ema_decay", m.ema_decay);
  v.list("files", m.files, [](auto& row, CheckpointFile& file) {
    row.text("name", file.name);
    row.count("bytes", file.bytes);
    row.text("sha256", file.sha256);
  });
  v.list("plugins", m.plugins, [](auto& row, CheckpointPlugin& plugin) {
    row.text("section", plugin.section);
    row.text("kind", plugin.kind);
    row.text("name", plugin.name);
    row.text("version", plugin.version);
    row.count("state_version", plugin.state_version);
    row.text("sha256", plugin.sha256);
  });
  v.object("data", m.data, [](auto& inner, CheckpointData& data) { describe_data(inner, data); });
  v.object("progress", m.progress,
           [](auto& inner, CheckpointProgress& progress) { describe_progress(inner, progress); });
  v.object("loss", m.loss, [](auto& inner, LossAccount::State& loss) { describe_loss(inner, loss); });
  v.text("config_sha256", m.config_sha256);
  v.text("config", m.config);
  v.identity("identity", m.identity);
}

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
  CheckpointManifest copy = manifest;  // the visitor takes members by reference in both directions
  Writer writer;
  writer.json["format"] = format_name;
  writer.json["format_version"] = checkpoint_format_version;
  describe(writer, copy);
  return writer.json.dump(1) + "\n";
}

CheckpointManifest manifest_from_json(std::string_view text, const std::string& source) {
  const Json json = parse_json<Json>(text);
  if (!json.is_object() || json.value("format", Json()) != format_name) {
    throw data_error("'{}' is not a checkpoint manifest; use another checkpoint.", source);
  }
  const Json version = json.value("format_version", Json());
  if (version != checkpoint_format_version) {
    throw data_error(
        "the checkpoint manifest '{}' has format version {}, but this program reads version {} only; use "
        "another checkpoint, or start the run anew.",
        source, version.dump(), checkpoint_format_version);
  }
  CheckpointManifest manifest;
  Reader reader(json, "", source);
  describe(reader, manifest);
  if (!has_sound_ring(manifest.loss)) {
    throw data_error(
        "'{}' is not a checkpoint manifest: 'loss.last_steps_skipped' are not "
        "among the last steps of the losses, in order; use another checkpoint.",
        source);
  }
  return manifest;
}

}  // namespace mulligan
