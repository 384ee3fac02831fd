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

// The stages of docs/doctor.md. `load` needs a weights file and is left out without one.
enum class Stage { data, loss, weights, forward, train, load };
// By its name in lower case.
Stage stage_of(const std::string& name);
const std::vector<std::string>& stage_names();

struct Examination {
  std::vector<Stage> stages;                      // empty: all
  std::uint64_t tokens = std::uint64_t{1} << 22;  // of each side of the data, at most
  std::filesystem::path weights;                  // a weights file in the place of the initial weights
};

// `loaded` has its plugins resolved. With a backend that computes nothing, findings are skipped ones. Throws Error where
// the configuration itself is wrong.
std::vector<Finding> examine(const LoadedConfig& loaded, PluginHost& host, const Examination& wanted);

}  // namespace mulligan::doctor
