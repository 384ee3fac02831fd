// The checks of `mulligan doctor` that read a weights file.
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

}  // namespace mulligan
