#include "framework/run/recorded_weights.h"

#include "framework/core/json_file.h"
#include "framework/core/sealed_json.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;

std::string recorded(const std::filesystem::path& result, const char* key) {
  if (!std::filesystem::exists(result)) return {};
  return read_json_object<Json>(
      result,
      [&](const Json& json) { return seal_of(json) == Seal::intact ? json.value(key, "") : std::string(); },
      "make it anew");
}

}  // namespace

std::string recorded_weights_sha256(const RunFiles& run) {
  return recorded(run.result(), "weights_sha256");
}

std::string recorded_artifact_sha256(const RunFiles& run) {
  return recorded(run.quantize_result(), "artifact_sha256");
}

}  // namespace mulligan
