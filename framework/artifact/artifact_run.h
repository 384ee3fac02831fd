// What the commands do with artifacts: make one from a run's weights, predict its size, score it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/artifact/make_artifact.h"
#include "framework/artifact/size_report.h"
#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/run/weight_origin.h"

namespace mulligan {

// Whether the file starts like an artifact. Throws data_error when it cannot be read.
bool is_artifact(const std::filesystem::path& path);

// What scores an artifact: plugins of the program by their names, and files of the user's own, which count as
// code whole: libraries outside of the program's plugin folder and the files of [[backend.kernels]].
struct ScoringCode {
  std::set<std::string> plugins;
  std::set<std::filesystem::path> own_files;
};
ScoringCode scoring_code(const LoadedConfig& loaded, PluginHost& host);
// The own files as one archive, packed like the source; empty: there are none.
std::string packed_own_files(const ScoringCode& scoring);

struct QuantizeRunOptions : ConsoleOptions {
  std::filesystem::path output;  // the artifact file
  std::filesystem::path result;  // the sizes as JSON (sizes_json); empty: none
  bool count_code = false;       // which takes seconds
  // Source tree whose code is counted; empty: the current folder where it is one, else the source
  // is not counted.
  std::filesystem::path source;
  // source_digest() of the tree that the program was built from; empty: not known. Under strict rules no
  // other tree's code is counted.
  std::string built_from;
};

// Quantises `weights` (as written by train) as [quantize] of `loaded` says, writes the artifact and prints
// the table of its sizes. Next to a run's weights the run's ledger is continued. Throws Error; run_error when
// under strict rules the artifact with its source breaks ledger.artifact_bytes, or calibration together with
// training ledger.train_seconds (the file is written all the same).
MadeArtifact quantize_weights(LoadedConfig& loaded, PluginHost& host, const std::filesystem::path& weights,
                              const QuantizeRunOptions& options);

// The table of predicted sizes; needs neither weights nor data nor a device. Of the options it reads those
// of the code.
std::string predict_artifact(LoadedConfig& loaded, PluginHost& host, const QuantizeRunOptions& options = {});

// What counts against ledger.artifact_bytes, before there are weights: the model without the quantiser's
// choices, and the code of an evaluation. `source` as in QuantizeRunOptions; without a tree no code is
// counted.
struct PredictedBytes {
  double model = 0;
  std::optional<std::uint64_t> code;
};
PredictedBytes predict_bytes(LoadedConfig& loaded, PluginHost& host, const std::filesystem::path& source);

// Artifact and configuration, checked against one another. Whether the tokenizer is its own is checked when
// it is scored (require_data_of).
struct OpenedArtifact {
  Artifact artifact;
  LoadedConfig loaded;
  WeightOrigin origin;
};
OpenedArtifact open_artifact(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                             const std::vector<SettingsFrom>& more = {});

}  // namespace mulligan
