// From trained weights to an artifact: calibrate, quantise, serialise. The steps that a run or a
// command goes through.
#pragma once

#include <string>

#include "framework/artifact/artifact_file.h"
#include "framework/config/run_config.h"
#include "framework/run/ledger.h"
#include "framework/run/loaded_model.h"

namespace mulligan {

class ProgressSink;
class Quantizer;

struct ArtifactSources {
  LoadedModel& model;  // its weights (averaged ones, where the run keeps them) are quantised
  const Quantizer& quantizer;
  std::string evaluation = {};  // evaluation_settings_text()
  DataIdentity data = {};       // of the weights' run; without a tokenizer that of data.tokenizer is taken
  ProgressSink* progress = nullptr;  // where each phase shows how far it is; may be null
  SecondsClock clock = steady_seconds;
};

struct MadeArtifact {
  Artifact artifact;
  std::string bytes;  // of the file
  ArtifactSizes sizes;
  // Calibration reads training data, so its time belongs to the training budget, from its first batch on; the
  // rest does not. The set-up is that of calibration: programs, memory, and a run that reads no data.
  double setup_seconds = 0;
  double calibrate_seconds = 0;
  double quantize_seconds = 0;
  double compress_seconds = 0;
};

// Reads the training shards and the tokenizer file that `loaded` names. Precondition: loaded.config.quantize
// is set. With a quantiser that needs no hessian nothing is calibrated. Throws Error.
MadeArtifact make_artifact(const LoadedConfig& loaded, const ArtifactSources& sources);

}  // namespace mulligan
