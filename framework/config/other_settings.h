// Settings that come from elsewhere than --set: from a row of a sweep, from another option, from the number of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/config/toml_document.h"

namespace mulligan {

// The origin of settings that a command-line option makes.
inline Origin of_option(std::string option) {
  return {Origin::Kind::command_line, std::move(option), 0};
}

// A step of this many micro-batches, for as many ranks.
SettingsFrom for_ranks(std::int64_t micro_batches);

// As in run_config.h, with `more` after the overrides.
LoadedConfig load_run_config(const std::string& path, std::span<const std::string> overrides,
                             std::span<const SettingsFrom> more);
LoadedConfig parse_stored_config(std::string_view text, const std::string& name,
                                 std::span<const std::string> overrides, std::span<const SettingsFrom> more);

}  // namespace mulligan
