// What a score is of, as digests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/config/score_settings.h"
#include "framework/model/parameter_values.h"
#include "framework/plugin/plugin_host.h"
#include "framework/run/score_state.h"

namespace mulligan {

class TensorStore;

// Of the settings that move the score, the masters in `store`, the tokens that are scored, the tokenizer's
// file, and the program with all plugins that `host` has loaded. Waits for the device.
ScoreIdentity score_identity(const LoadedConfig& loaded, ScoreCommand command, const PluginHost& host,
                             const TensorStore& store, const std::vector<ParameterLayout>& layouts,
                             std::span<const std::uint16_t> tokens);

}  // namespace mulligan
