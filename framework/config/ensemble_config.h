// The [ensemble] section: several models made of a run's weights, scored together (docs/numerics/ensembles.md).
#pragma once

#include <cstdint>

#include "framework/config/plugin_config.h"

namespace mulligan {

// What the host itself reads in [ensemble].
struct EnsembleOptions {
  int64_t members = 10;
  int64_t seed = 0;               // of the members' random numbers, apart from run.seed
  int64_t chunk_mebibytes = 256;  // host memory for averaged probabilities; no score depends on it
  bool count_members = false;     // the bytes of all members count against ledger.artifact_bytes
};

// [ensemble]
struct EnsembleSection {
  EnsembleOptions options;
  PluginTable table;  // the ensemble plugin, section "ensemble"
};

}  // namespace mulligan
