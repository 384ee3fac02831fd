// A configuration as several ranks need it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "framework/config/run_config.h"

namespace mulligan {

// load_run_config with so many micro-batches a step, whose origin is the number of ranks.
LoadedConfig load_for_ranks(const std::string& path, std::span<const std::string> overrides,
                            std::int64_t micro_batches);

}  // namespace mulligan
