// The graphs of one training step, apart from the optimisers' update (optimizer_groups.h).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/graph/call_access.h"
#include "framework/graph/graph.h"
#include "framework/graph/tape.h"
#include "framework/plugin/loss.h"
#include "framework/run/parameter_plan.h"

namespace mulligan {

// Names of the tensors that the step's host side touches; T tokens of a micro-batch.
namespace step_tensor {
inline constexpr const char* sums = "metrics/sums";  // what zero_sums() zeroes at once, f64
inline constexpr const char* batch = "batch";        // prefix of the packed inputs
inline constexpr const char* loss_weight =
    "batch/loss_weight";  // [T] f32: of a token's loss in what is differentiated
inline constexpr const char* unscale = "metrics/unscale";        // [1] f32: 1 / the scale of the loss
inline constexpr const char* loss_sum = "metrics/loss_sum";      // [1] f64: of the step's token losses, nats
inline constexpr const char* square_sum = "metrics/square_sum";  // [1] f64: of all gradients
// Prefix; [1] f64: of the gradients of one optimiser's parameters (group_square_sum_name).
inline constexpr const char* group_square_sum = "metrics/square_sum_of_group/";
inline constexpr const char* slice_squares =
    "metrics/square_sums_of_slices";                                   // [optimisers] f64: of cut gradients
inline constexpr const char* gradient_norm = "metrics/gradient_norm";  // [1] f32: before clipping
inline constexpr const char* clip_scale = "metrics/clip_scale";        // [1] f32
// [2] f32: the shares of averages and of weights at rest in what is scored (blends_scores).
inline constexpr const char* blend = "ema_blend";
inline constexpr const char* ring_index = "metrics/ring_index";  // [1] i64
inline constexpr const char* loss_ring = "metrics/loss_ring";    // [n] f64
inline constexpr const char* norm_ring = "metrics/norm_ring";    // [n] f64
}  // namespace step_tensor

// "ema/NAME": the averaged weights, f32.
std::string average_name(std::string_view parameter);
// The average that an update of one of `world_size` ranks makes: of the whole parameter, or of its slice.
std::string updated_average_name(const PlannedParameter& parameter, int world_size);

// "rest/NAME": the weights after an update where a wrapper moves the master on from there; of its dtype.
std::string rest_name(std::string_view parameter);
// The tensor that holds the weights at rest: that one, or the master.
std::string rest_tensor(const PlannedParameter& parameter, bool wrapped);

// The tokens of a micro-batch, and their rotary positions: one packed row, or rows that count from 0 each.
struct MicroBatch {
  std::int64_t tokens = 0, positions = 0;
  double fp8_gradient_scale = 0;  // as ForwardOptions
  MicroBatch(std::int64_t one_row) : tokens(one_row), positions(one_row) {}
  MicroBatch(std::int64_t tokens_, std::int64_t positions_) : tokens(tokens_), positions(positions_) {}
};

// Forward, loss and backward of one micro-batch: gradients are added to "gradient/...", the
// token losses to loss_sum. The gradient is that of sum(loss_weight * token_loss).
Graph build_micro_step(const ModelConfig& model, const std::vector<PlannedParameter>& parameters,
                       const Loss& loss, const MicroBatch& batch, LayerOrderKind order,
                       FusedKernels fused = {});

// The sum of squares of the gradients of optimiser number `optimizer` (of PlannedParameter::optimizer).
std::string group_square_sum_name(std::size_t optimizer);

// Whether gradients are clipped before they are reduced, and whether that is done to each micro-batch's.
bool clips_before_reduction(const TrainConfig& train);
bool clips_each_micro_batch(const TrainConfig& train);

// All gradients multiplied with step_tensor::unscale.
Graph build_unscale(const std::vector<PlannedParameter>& parameters);

// The gradients that a clip measures and scales, and by what else it scales them.
struct ClipScope {
  int world_size = 1;
  int rank = 0;
  // Those of parameters that ranks gather are what this rank updates, whose squares are in slice_squares, summed
  // over ranks.
  bool slices = false;
  double factor = 1;
  // By index of the optimiser: whose update scales the gradients, so that the clip need not. Empty: none.
  std::vector<bool> scaled_by_update = {};
};
// The global gradient norm, from the groups' sums of squares, and all gradients scaled to at most `max_norm`
// (0: only measured). All sums must be zero before.
Graph build_clip(const std::vector<PlannedParameter>& parameters, double max_norm,
                 const ClipScope& scope = {});

// What follows an update of `parameters` by one of `world_size` ranks, after the calls of `before`: the compute
// copies; the averages of the weights at rest (ema.decay > 0), of cut ones those of the slices; the calls with which
// averages begin (ema.from_step > 0). A step makes the first and, by average_step(), one of the others.
struct FollowUpParts {
  std::size_t averages = 0, begin = 0;  // the first calls of the second part and of the third
};
struct FollowUp : FollowUpParts {
  Graph graph;
};
FollowUp build_follow_up(Graph before, const std::vector<PlannedParameter>& parameters, const EmaConfig& ema,
                         int world_size, bool wrapped = false);

// The compute copies alone, for weights that were set from outside.
Graph build_refresh(const std::vector<PlannedParameter>& parameters);

// Puts the step's loss sum and gradient norm into rings of `capacity` entries, at ring_index.
Graph build_record(std::int64_t capacity);

// Attaches a loss plugin to the logits of a forward pass.
//
// Records token_loss [T] f32 (nats) from logits [T, V] before the model's softcap `cap` (0: none) and targets
// [T] i32. A loss that fuses the softcap gets the raw logits and the cap; for others the softcap is recorded
// beforehand. The gradient with respect to the logits takes over their storage, so that no second [T, V]
// tensor is needed. `loss` must live until the tape's backward pass is recorded. Throws the plugin's sentence
// as run_error. `hidden` [T, D] is what the head multiplied; a loss that reads it adds to its gradient.
// `upstream` [T] f32: the seed that tape.backward(token_loss, ...) will be given, where that is known now: a
// loss that can computes the gradient in the forward pass, where the tape's fused kernels have it, so nothing
// else may read the logits.
Value attach_loss(Tape& tape, const Loss& loss, double cap, Value hidden, Value logits, Value targets,
                  Value upstream = {});

}  // namespace mulligan
