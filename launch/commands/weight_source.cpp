#include "launch/commands/weight_source.h"

#include <filesystem>

#include "framework/artifact/artifact_model.h"
#include "framework/artifact/artifact_run.h"
#include "framework/core/error.h"
#include "framework/train/weights.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

WeightSource from_artifact(const fs::path& path, const RunOptions& options) {
  if (!options.config.empty()) {
    throw config_error(
        "an artifact brings its own configuration; change keys with --set instead of --config.");
  }
  const auto opened = std::make_shared<OpenedArtifact>(open_artifact(path, options.overrides));
  tell_notes(opened->loaded);
  const ModelConfig model = opened->loaded.config.model;
  const auto load = [opened, model](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_artifact(opened->artifact, model, store, layouts);
  };
  return {opened->origin, std::move(opened->loaded), load};
}

}  // namespace

WeightSource open_weights(const std::string& name, const RunOptions& options) {
  const fs::path path = name;
  if (!fs::exists(path)) {
    throw data_error("'{}' does not exist; give an artifact, a run directory or a weights file.", name);
  }
  const bool directory = fs::is_directory(path);
  if (!directory && is_artifact(path)) return from_artifact(path, options);
  const fs::path weights = directory ? path / "weights.safetensors" : path;
  if (!fs::exists(weights)) {
    throw data_error("'{}' holds no weights.safetensors, so the run has not finished; train it first.", name);
  }
  std::string config = options.config;
  if (config.empty()) {
    const fs::path beside = (directory ? path : path.parent_path()) / "config.toml";
    if (!fs::exists(beside)) {
      throw config_error("there is no config.toml beside '{}'; name the configuration with --config.", name);
    }
    config = beside.string();
  }
  const auto load = [weights](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_weights(weights, store, layouts);
  };
  return {origin_of_weights(weights), load_config(config, options.overrides), load};
}

}  // namespace mulligan
