// Resuming: which checkpoint a run continues from, and whether it may.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/config/run_config.h"
#include "framework/data/loader.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

struct ResumePoint {
  std::optional<Checkpoint> checkpoint;  // absent: training starts from the beginning
  bool in_place = false;                 // it is one of the run's own: its log and metrics go on
  std::vector<std::string> notes;        // for the log: damaged checkpoints, settings that changed, ...
};

// `resume` is "" (no), "auto" (the newest sound checkpoint of the run, or none when it has none yet) or a
// path (see find_checkpoint). Compares the checkpoint's configuration and plugins with `loaded`, whose
// plugins are resolved. Throws data_error when there are checkpoints but none is sound, and config_error when
// the model, the optimisers, the batch or a plugin's state version differ. Changes nothing.
ResumePoint find_resume_point(const LoadedConfig& loaded, PluginHost& host, const std::string& resume);

// What to tell about plugins that wrote the checkpoint and those in use. Throws config_error naming the
// section when a plugin's state version differs; other differences are sentences.
std::vector<std::string> compare_plugins(const CheckpointManifest& manifest, const LoadedConfig& loaded,
                                         PluginHost& host);
// The plugins in use, for a manifest.
std::vector<CheckpointPlugin> checkpoint_plugins(const LoadedConfig& loaded, PluginHost& host);

// The shards that a loader reads, for a manifest.
std::vector<CheckpointShard> checkpoint_shards(const LoaderOptions& options);
// Throws data_error unless the loader reads the same rows of the same shards as the saved run did.
void require_same_data(const CheckpointData& saved, const LoaderOptions& options);

}  // namespace mulligan
