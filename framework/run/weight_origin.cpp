#include "framework/run/weight_origin.h"

#include <algorithm>

#include "framework/config/run_config.h"
#include "framework/core/error.h"
#include "framework/core/json_file.h"
#include "framework/core/safetensors.h"
#include "framework/run/weights.h"

namespace mulligan {
namespace {

std::string words_for(const WeightOrigin& origin) {
  return fmt::format("the {} '{}'", origin.kind == WeightOrigin::Kind::artifact ? "artifact" : "weights file",
                     origin.name);
}

}  // namespace

WeightOrigin origin_of_weights(const std::filesystem::path& path) {
  return origin_of_metadata(SafetensorsFile(path).metadata(), path.string());
}

WeightOrigin origin_of_metadata(const std::map<std::string, std::string>& metadata, const std::string& name) {
  WeightOrigin origin(name);
  origin.kind = WeightOrigin::Kind::weights;
  origin.has_checksum = metadata.contains(tensors_sha256_key);
  if (origin.has_checksum) origin.sha256 = metadata.at(tensors_sha256_key);  // checked when they are loaded
  if (const auto data = metadata.find(data_identity_key); data != metadata.end()) {
    origin.data = data_identity_from_text(data->second, words_for(origin));
  }
  return origin;
}

std::vector<std::string> require_tokenizer_of(const WeightOrigin& origin, const DataIdentity& now,
                                              const DataConfig& data) {
  std::vector<std::string> notes;
  if (origin.kind == WeightOrigin::Kind::memory) return notes;
  const std::string name = words_for(origin);
  if (!origin.has_checksum) {
    notes.push_back(
        fmt::format("note: {} carries no checksum of its tensors, so they are not checked", name));
  }
  require_same_tokenizer({name, origin.data}, now, data.tokenizer);
  if (origin.kind == WeightOrigin::Kind::artifact || !origin.data.empty()) return notes;
  notes.push_back(
      fmt::format("note: {} carries no digests of its data, so whether tokenizer and shards are still those "
                  "of its run cannot be checked",
                  name));
  return notes;
}

std::vector<std::string> require_data_of(const WeightOrigin& origin, const DataIdentity& now,
                                         const DataConfig& data) {
  std::vector<std::string> notes = require_tokenizer_of(origin, now, data);
  if (origin.kind == WeightOrigin::Kind::memory || origin.data.empty()) return notes;
  for (const ShardIdentity& shard : now.validation.shards) {
    if (std::ranges::find(origin.data.train.shards, shard.sha256, &ShardIdentity::sha256) ==
        origin.data.train.shards.end()) {
      continue;
    }
    notes.push_back(fmt::format("warning: the scored shard '{}' is one that {} was trained on", shard.name,
                                words_for(origin)));
  }
  const std::string difference = validation_difference(origin.data, now);
  if (!difference.empty())
    notes.push_back(fmt::format("note: this is not the validation of the weights' run: {}", difference));
  return notes;
}

namespace {

using Json = nlohmann::ordered_json;

std::string recorded(const std::filesystem::path& result, const char* key) {
  if (!std::filesystem::exists(result)) return {};
  return read_json_object<Json>(
      result, [&](const Json& json) { return json.value(key, ""); }, "make it anew");
}

}  // namespace

std::string recorded_weights_sha256(const RunFiles& run) {
  return recorded(run.result(), "weights_sha256");
}

std::string recorded_artifact_sha256(const RunFiles& run) {
  return recorded(run.quantize_result(), "artifact_sha256");
}

}  // namespace mulligan
