// What [arena] asks of a run's files and ranks; of its keys: framework/config/arena_config.h.
#pragma once

#include "framework/config/run_config.h"
#include "framework/data/data_identity.h"

namespace mulligan {

// Throws Error where a run with arena.track does not read the benchmark's files by their names, in their order and of
// their lengths, or where `world_size` ranks do not divide 8. Whether the tokens in them are the published ones is not
// known here: result.json has their digests.
void require_arena(const RunConfig& config, const DataIdentity& data, int world_size);

}  // namespace mulligan
