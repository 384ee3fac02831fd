#include "launch/commands/weight_source.h"

#include <filesystem>

#include "framework/artifact/artifact_model.h"
#include "framework/artifact/artifact_run.h"
#include "framework/core/error.h"
#include "framework/core/mapped_file.h"
#include "framework/run/weights.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// Recognised by its name, or by the start of its header: eight bytes of length, then JSON.
bool is_safetensors(const fs::path& path) {
  if (path.extension() == ".safetensors") return true;
  const MappedFile file(path);
  return file.bytes().size() > 8 && file.bytes()[8] == std::byte{'{'};
}

WeightSource from_artifact(const fs::path& path, const RunOptions& options) {
  if (!options.config.empty()) {
    throw config_error(
        "an artifact brings its own configuration; change keys with --set instead of --config.");
  }
  const auto opened = std::make_shared<OpenedArtifact>(open_artifact(path, options.overrides, options.more));
  tell_notes(opened->loaded);
  const ModelConfig model = opened->loaded.config.model;
  const auto load = [opened, model](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_artifact(opened->artifact, model, store, layouts);
  };
  return {opened->origin, std::move(opened->loaded), load};
}

}  // namespace

std::string configuration_of(const RunOptions& options, const fs::path& folder, const std::string& name) {
  if (!options.config.empty()) return options.config;
  const fs::path config = folder / "config.toml";
  if (fs::exists(config)) return config.string();
  throw config_error("there is no config.toml next to '{}'; name the configuration with --config.", name);
}

WeightSource open_weights(const std::string& name, const RunOptions& options) {
  const fs::path path = name;
  const bool exists = fs::exists(path);
  if (exists && !fs::is_directory(path) && is_artifact(path)) return from_artifact(path, options);
  if (!exists) {
    throw data_error("'{}' does not exist; give an artifact, a run directory or a weights file.", name);
  }
  const bool directory = fs::is_directory(path);
  if (!directory && !is_safetensors(path)) {
    throw data_error(
        "'{}' is neither an artifact, which starts with the word MULLIGAN, nor weights in safetensors; copy "
        "it again or name another.",
        name);
  }
  const fs::path weights = directory ? path / "weights.safetensors" : path;
  if (!fs::exists(weights)) {
    throw data_error("'{}' holds no weights.safetensors, so the run has not finished; train it first.", name);
  }
  const auto load = [weights](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_weights(weights, store, layouts);
  };
  LoadedConfig loaded = load_config(configuration_of(options, directory ? path : path.parent_path(), name),
                                    options.overrides, options.more);
  require_weights(weights, loaded.config.model);
  return {origin_of_weights(weights), std::move(loaded), load};
}

}  // namespace mulligan
