// The declaration of every core key (not the plugins' own): the one place that names them.
#pragma once

#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/config/schema.h"

namespace mulligan {

// [run], [data], [model.*], [train.*] and the other tables whose keys are all known; full names.
void declare_keys(Schema<RunConfig>& s);
// Rows.
void declare_keys(Schema<KernelRow>& s);
void declare_keys(Schema<DataMixRow>& s);
void declare_keys(Schema<InitialValuesRow>& s);
void declare_keys(Schema<Phase>& s);
void declare_keys(Schema<ParameterRow>& s);
void declare_keys(Schema<QuantizeTensorRow>& s);
// What the host reads in [optimizer.NAME], [schedule], [quantize] and [ensemble] besides plugin and path.
void declare_keys(Schema<OptimizerConfig>& s);
void declare_keys(Schema<ScheduleOptions>& s);
void declare_keys(Schema<QuantizeOptions>& s);
void declare_keys(Schema<EnsembleOptions>& s);

// One table of the reference.
struct KeySection {
  std::string header;  // "[model.rope]", "[[parameters]]"
  std::string about;   // one sentence
  std::vector<KeySpec> keys = {};
};
// Every core table in the order of the reference, plugin tables with the host's keys.
std::vector<KeySection> core_sections();

// Sorted full names of all core keys, for example "model.rope.dims", "optimizer.NAME.lr", "parameters.match".
std::vector<std::string> core_key_names();

// Throws config_error at the first broken rule, naming the keys involved with their origins. Runs after
// derived values have been filled in.
void check_rules(const LoadedConfig& loaded);

// Throws config_error for a key of [model] that asks for a part which the model's family has not. `written`:
// before derived values are filled in; `core`: its keys with their origins.
void check_family(const RunConfig& written, const Settings& core);

}  // namespace mulligan
