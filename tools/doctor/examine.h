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

// data: D19 to D25, D31. loss: D01, D02. weights: D05 to D07. forward: D09 or D10, D11, D14 to D18, D28,
// D33. train: D13, D29, D30, D32, D34, D35.
enum class Stage { data, loss, weights, forward, train };
// By its name in lower case.
Stage stage_of(const std::string& name);
const std::vector<std::string>& stage_names();

struct Examination {
  std::vector<Stage> stages;                      // empty: all
  std::uint64_t tokens = std::uint64_t{1} << 22;  // of each side of the data, at most
  std::filesystem::path weights;                  // a weights file in the place of the initial weights
};

// `loaded` has its plugins resolved. What a backend that computes nothing cannot say is a skipped
// finding. Throws Error where the configuration itself is wrong.
std::vector<Finding> examine(const LoadedConfig& loaded, PluginHost& host, const Examination& wanted);

}  // namespace mulligan::doctor
