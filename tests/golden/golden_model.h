// The model of a fixture's manifest.
#pragma once

#include <nlohmann/json.hpp>

#include "framework/config/model_config.h"

namespace mulligan {

// `config`: the manifest's "config" object, with the reference script's names.
ModelConfig golden_model(const nlohmann::json& config);

// The model of the fixture model-2014 and those that share its parameters: their manifests use other names.
ModelConfig golden_later_model(const nlohmann::json& config);

// The model of the arena's fixtures, of `sizes`: a manifest's "config" or "heads128"; attention scale and softcap are
// those of `config`.
ModelConfig golden_arena_model(const nlohmann::json& config, const nlohmann::json& sizes);

}  // namespace mulligan
