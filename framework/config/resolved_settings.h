// Reads the text of print_resolved() back as a list: every key with its value and where that came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

struct ResolvedSetting {
  std::string key;     // full name; rows of lists are numbered: "parameters.0.optimizer"
  std::string value;   // in TOML syntax
  std::string origin;  // "configs/x.toml:12", "--set", "default" or "derived"; empty where none is written
};

// All settings in the order of the file. Lines that are neither tables nor settings are passed over.
std::vector<ResolvedSetting> resolved_settings(std::string_view text);

// The sha256 of the settings alone: of print_resolved()'s lines without comments and origins.
std::string settings_digest(std::string_view resolved);

}  // namespace mulligan
