// All checks of a configuration, as `mulligan doctor` makes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

struct Examination {
  // "data", "loss", "weights", "forward", "train" or "load" (docs/doctor.md); empty: all, "load" where there are weights.
  std::vector<std::string> stages;
  std::uint64_t tokens = std::uint64_t{1} << 22;  // of each side of the data, at most
  std::filesystem::path weights;                  // a weights file in the place of the initial weights
};

// `loaded` has its plugins resolved. With a backend that computes nothing, findings are skipped ones. Throws Error where
// the configuration itself is wrong.
std::vector<Finding> examine(const LoadedConfig& loaded, PluginHost& host, const Examination& wanted);

}  // namespace mulligan::doctor
