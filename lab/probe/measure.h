// A model's logits and greedy continuations in batches of several sizes. Probes of batch invariance and of precisions compare them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/run/loaded_model.h"
#include "framework/run/weight_origin.h"

namespace mulligan::probe {

struct ProbeOptions : ConsoleOptions {
  std::vector<std::int64_t> batches = {1, 3, 8, 32};  // the others are compared with the first
  std::int64_t sequences = 4;                         // of the validation set, at equal distances
  std::int64_t length = 128;                          // tokens of a sequence
  std::int64_t prompt = 32;                           // of them before a continuation
  std::int64_t tokens = 256;                          // of a continuation; 0: none is made
  bool evaluate = false;                              // score the validation set as well
  bool first_batch_alone = false;                     // of the batch sizes, with the same sequences
};

// The storage of the weights and the compute dtype: "fp32", "bf16", "fp16", "layercast-bf16", "layercast-fp16".
struct ProbePrecision {
  std::string name;
  Precision compute = Precision::fp32;
  LayerCast layercast = LayerCast::off;
};
const std::vector<ProbePrecision>& probe_precisions();
// Throws config_error for another word; the message lists these.
const ProbePrecision& find_precision(const std::string& name);

// Of one batch size.
struct BatchMeasurement {
  std::int64_t batch = 0;
  std::vector<float> logits;                         // [sequences, length, vocabulary]
  std::vector<std::vector<std::int32_t>> continued;  // [sequences][tokens], each the most probable token
  double seconds = 0;                                // of both, without making programs
};

struct Measurement {
  std::string precision;
  std::string setting;  // what the caller changed besides: "run.fused_kernels=false"; "": nothing
  std::string device;   // the backend's own words
  std::int64_t vocabulary = 0;
  std::int64_t projection_elements = 0, other_elements = 0;
  std::int64_t weight_bytes = 0;        // of the weights as kernels read them
  std::int64_t held_bytes = 0;          // with masters that are there besides
  std::optional<double> val_bpb;        // of the whole validation set, where it was asked for
  double scored_tokens_per_second = 0;  // of that
  std::vector<BatchMeasurement> batches;
};

// For logits, each sequence is the last of a batch of the others. For continuations, neighbouring sequences are continued
// together. `loaded` is scored in `precision`, not in that of its last phase. Throws config_error, data_error (a validation set
// that is too short), run_error (logits that are not finite).
Measurement measure(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                    const WeightLoader& load, const ProbePrecision& precision, const ProbeOptions& options);

}  // namespace mulligan::probe
