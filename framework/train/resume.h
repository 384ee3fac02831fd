// Resuming: which checkpoint a run continues from, and whether it may.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/config/run_config.h"
#include "framework/data/loader.h"
#include "framework/plugin/plugin_host.h"
#include "framework/run/run_ranks.h"

namespace mulligan {

// Attempt: whether a training is another attempt of a job whose launcher starts it again, and goes on with what the
// attempt before it has left in the run directory.
//
// A launcher's count of restarts does not tell. Agents of torchrun do not count what ended because a machine came
// or went, and an attempt that was counted may have ended before it touched the run directory, which then holds
// somebody else's run. So the job is noted in the run directory (RunFiles::attempt).
struct Attempt {
  std::string launcher, run_id;
  // torchrun's, whose names of jobs are used again: one of its agents lives as long as the job.
  std::vector<std::string> agents;
  std::int64_t restarts = 0;
};

// Collective. This attempt of the ranks; agents on the first rank alone.
Attempt own_attempt(RunRanks& ranks);

// The attempt that began, or last continued, the run in that directory. Nothing where no launcher did, or the
// note cannot be read.
std::optional<Attempt> noted_attempt(const std::filesystem::path& run_directory);
void note_attempt(const std::filesystem::path& run_directory, const Attempt& attempt);

// Whether `now` goes on with the run that `before` has left; then counts its restarts.
bool goes_on(const std::optional<Attempt>& before, Attempt& now);

struct ResumePoint {
  std::optional<Checkpoint> checkpoint;  // absent: training starts from the beginning
  bool in_place = false;                 // it is one of the run's own: its log and metrics go on
  bool replaces = false;                 // a run that is there (TrainOptions::overwrite)
  Attempt attempt;                       // of the first rank
  std::vector<std::string> notes;        // for the log: damaged checkpoints, settings that changed, ...
};

// `resume` is "" (no), "auto" (the newest sound checkpoint of the run, or none when it has none yet) or a
// path (see find_checkpoint). Compares the checkpoint's configuration and plugins with `loaded`, whose
// plugins are resolved. Throws data_error when there are checkpoints but none is sound, and config_error when
// the model, the optimisers, the batch or a plugin's state version differ. Changes nothing.
ResumePoint find_resume_point(const LoadedConfig& loaded, PluginHost& host, const std::string& resume);

// The plugins in use, for a manifest.
std::vector<CheckpointPlugin> checkpoint_plugins(const LoadedConfig& loaded, PluginHost& host);

// Throws config_error unless the loader reads rows of the same length as the saved run did.
void require_same_rows(const CheckpointData& saved, const LoaderOptions& options);
// The phase that the saved run was in. Throws config_error where this run has none of that name.
std::size_t saved_phase(const CheckpointManifest& manifest, const std::vector<Phase>& phases);
// Compares tokenizer, training and validation shards by their digests. Throws data_error where both sides
// know one and they differ.
void require_same_identity(const Checkpoint& checkpoint, const DataIdentity& now,
                           const std::string& tokenizer_file);

}  // namespace mulligan
