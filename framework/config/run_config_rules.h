// Rules between keys that no single key's range can state.
#pragma once

#include "framework/config/run_config.h"

namespace mulligan {

// Throws config_error at the first broken rule, naming the keys involved with their origins. Runs after
// derived values have been filled in.
void check_rules(const LoadedConfig& loaded);

// Throws config_error for a key of [model] that asks for a part which the model's family has not. `written`:
// before derived values are filled in; `core`: its keys with their origins.
void check_family(const RunConfig& written, const Settings& core);

// Throws config_error where a run with arena.track would train another model, read other data or in other batches, be
// scored otherwise, or end otherwise than after train.steps. The files themselves: framework/run/training_data.h.
void check_arena(const LoadedConfig& loaded);

}  // namespace mulligan
