// Checks of `mulligan doctor` that read weights or run the forward pass.
#pragma once

#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "tools/doctor/finding.h"

namespace mulligan {

// D03, D04 and D08 of the weights `name` (a file, or a folder with model.safetensors): loads them as scoring
// does and reads them back from the run's backend. With `all` every element is compared.
std::vector<doctor::Finding> load_findings(LoadedConfig& loaded, PluginHost& host, const std::string& name,
                                           bool all);

struct ParityArguments {
  std::string against = "cpu";  // a backend plugin, or a .safetensors file of another program's values
  std::string weights;          // as above; empty: large random ones
  std::int64_t tokens = 96;     // of the random row
  bool inject = false;          // each value of the file takes the place of the computed one
  bool verbose = false;         // prints a line for each op
};

// D12.
std::vector<doctor::Finding> parity_findings(LoadedConfig& loaded, PluginHost& host,
                                             const ParityArguments& arguments);

}  // namespace mulligan
