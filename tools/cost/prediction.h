// Where a training step's time would go on a card, by arithmetic (mulligan profile --predict), not measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/graph/call_access.h"
#include "framework/graph/graph.h"
#include "framework/plugin/plugin_host.h"
#include "tools/cost/cost_text.h"
#include "tools/cost/dry_run.h"
#include "tools/cost/profile.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {

// The time that one kernel call is predicted to take on a card, by its shapes and the rates of cost.h.

// Matmuls by the smallest and the middle extent of [m, k] x [k, n], in any order.
enum class ProductClass {
  wide,   // smallest >= 128, middle >= 4096: the head of a language model
  layer,  // smallest >= 128
  narrow,  // smallest < 128, such as gates: tiles of 128 are computed whole, so the rate is that share of a layer's
};
ProductClass product_class(const Graph& graph, const Call& call);

// seconds = launches * launch_seconds + max(flops / rate, bytes / sustained_bytes_per_second), and for the cross entropy at
// least its instructions by their rate. `work` is what the cuda backend launches for the call. A library call counts as one
// kernel, cuDNN's backward attention as three; its f32 sums of gradients are added. A matmul with activation costs the
// library's matmul and the launch after it. Bytes are those of the arguments that the signature declares as read and
// written, except what a kernel's code does not read. `segment_tokens` is as in graph_cost.
CostRow predict_call(const Graph& graph, const Call& call, const CallAccess& access, const mlg_work& work,
                     std::int64_t segment_tokens, const Card& card);

// The cost of an event of the rehearsal's last step; shapes are left out.
CostRow event_cost(const StepRehearsal& rehearsal, const StepEvent& event, std::int64_t segment_tokens,
                   const Card& card);

// The step is that of one of the ranks.
struct PredictOptions : DryRunOptions {
  // Token-weighted mean length of the documents in a row; 0: whole segments.
  std::int64_t document_tokens = 0;
  ProfileOptions profile = {};  // by_shape, and which phase; where it names none: all
};

struct PredictedPhase {
  std::string name;
  std::int64_t layers = 0;  // executed
  std::vector<CostRow> rows, categories;
  CostRow total;           // of all rows, one after the other and without communication
  std::int64_t calls = 0;  // of kernels
  std::int64_t memsets = 0, copies = 0, uploads = 0;
};

// Makes a step of each phase where nothing is computed (StepRehearsal) and adds up predict_call(). Each
// memset, copy or upload costs a launch or upload_seconds, and its bytes. Changes [backend] in `loaded`.
// Throws Error.
std::vector<PredictedPhase> predict_step(LoadedConfig& loaded, PluginHost& host,
                                         const PredictOptions& options);

// As tables for people; ends with a newline. `tokens`: of a step of all ranks.
std::string format_prediction(const std::vector<PredictedPhase>& phases, const PredictOptions& options,
                              std::int64_t tokens);
// As one JSON object, with units in the names; ends with a newline.
std::string prediction_json(const std::vector<PredictedPhase>& phases, const PredictOptions& options,
                            std::int64_t tokens);

}  // namespace mulligan
