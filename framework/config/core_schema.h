// The declaration of every core key (not the plugins' own): the one place that names them.
#pragma once

#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/config/schema.h"

namespace mulligan {

// [run], [data], [model.*], [train.*], [ema], [checkpoint], [metrics], [doctor], [noise],
// [loss_scale], [eval], [ledger], bound to RunConfig; full names.
const Schema<RunConfig>& core_schema();
// The keys of one [[backend.kernels]] row.
const Schema<KernelRow>& kernel_row_schema();
// The keys of one [[parameters]] row.
const Schema<ParameterRow>& parameter_row_schema();
// The keys of one [[data.mix]] row.
const Schema<DataMixRow>& data_mix_schema();
// The keys of one [[init.values]] row.
const Schema<InitialValuesRow>& initial_values_schema();
// The words of train.compute_dtype, in the order of Precision.
const std::vector<std::pair<std::string, Precision>>& compute_dtype_words();
// The words of train.layercast, in the order of LayerCast.
const std::vector<std::pair<std::string, LayerCast>>& layercast_words();
// The words of noise.mode, in the order of NoiseMode.
const std::vector<std::pair<std::string, NoiseMode>>& noise_words();
// The keys of one [[phase]] row.
const Schema<Phase>& phase_schema();
// The keys of one [[quantize.tensors]] row.
const Schema<QuantizeTensorRow>& quantize_row_schema();
// What the host reads in [quantize] besides plugin and path, and its way from the table into the struct.
std::vector<KeySpec> quantize_host_keys();
void store_quantize_host_keys(QuantizeConfig& quantize);
// What the host reads in [optimizer.NAME] besides plugin and path.
std::vector<KeySpec> optimizer_host_keys();

// What the host reads in [schedule] besides plugin and path.
std::vector<KeySpec> schedule_host_keys();

// One table of the reference.
struct KeySection {
  std::string header;  // "[model.rope]", "[[parameters]]"
  std::string about;   // one sentence
  std::vector<KeySpec> keys;
};
// Every core table in the order of the reference, plugin tables with the host's keys.
std::vector<KeySection> core_sections();

// Sorted full names of all core keys, for example "model.rope.dims", "optimizer.NAME.lr", "parameters.match".
std::vector<std::string> core_key_names();

}  // namespace mulligan
