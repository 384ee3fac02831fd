// Where the time of a training step goes: one step, run call by call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "tools/cost/cost_text.h"

namespace mulligan {

struct ProfileOptions {
  int steps = 3;          // each is timed; the median counts
  bool by_shape = false;  // a row per kernel and shapes, not per kernel
  std::string phase;      // a name; empty: the first one
};

struct Profile {
  std::string backend;                        // its own description
  std::vector<CostRow> rows;                  // bytes_read: of every argument, once
  double call_seconds = 0;                    // sum of the rows
  double step_seconds = 0;                    // median of whole steps, run as training runs them
  double first_step_seconds = 0;              // from the call of profile_step to the end of the first step
  std::int64_t tokens = 0;                    // of a step
  std::int64_t peak_memory_bytes = 0;         // of the process
  std::int64_t peak_device_memory_bytes = 0;  // that the backend had allocated at once
};

// The phase with that name ("": the first), an index into RunConfig::phases; config_error where there is none.
std::size_t chosen_phase(const RunConfig& config, const std::string& name);

// Initial weights, the first rows of data.train. In the profiled pass every call is followed by a
// synchronisation, which on a device adds to short calls. Throws Error.
Profile profile_step(LoadedConfig& loaded, PluginHost& host, const ProfileOptions& options);

// As a table for people; ends with a newline.
std::string format_profile(const Profile& profile);
// As one JSON object, with units in the names; ends with a newline.
std::string profile_json(const Profile& profile);

}  // namespace mulligan
