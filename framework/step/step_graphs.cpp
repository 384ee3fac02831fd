#include "framework/step/step_graphs.h"

#include <fmt/format.h>
#include <algorithm>
#include <stdexcept>

#include "framework/graph/graph_recorder.h"
#include "framework/graph/passes.h"
#include "framework/model/elements/stages.h"
#include "framework/model/forward.h"
#include "framework/model/packed_inputs.h"
#include "kernels/softcap/op.h"

namespace mulligan {
namespace {

const TensorType one_f32(MLG_F32, {1});
const TensorType one_f64(MLG_F64, {1});

Value gradient(Graph& graph, const PlannedParameter& parameter) {
  return graph.external(gradient_name(parameter.name()), parameter.layout.spec.type);
}

}  // namespace

std::string average_name(std::string_view parameter) {
  return fmt::format("ema/{}", parameter);
}
std::string updated_average_name(const PlannedParameter& parameter, int world_size) {
  if (parameter.is_cut(world_size)) return fmt::format("ema_slice/{}", parameter.name());
  return average_name(parameter.name());
}

std::string rest_name(std::string_view parameter) {
  return fmt::format("rest/{}", parameter);
}
std::string rest_tensor(const PlannedParameter& parameter, bool wrapped) {
  return wrapped && parameter.trained() ? rest_name(parameter.name()) : master_name(parameter.name());
}

std::string group_square_sum_name(std::size_t optimizer) {
  return fmt::format("{}{}", step_tensor::group_square_sum, optimizer);
}

Graph build_micro_step(const ModelConfig& model, const std::vector<PlannedParameter>& parameters,
                       const Loss& loss, const MicroBatch& batch, LayerOrderKind order, FusedKernels fused) {
  Graph graph;
  Tape tape(graph, true, fused);
  const PackedInputs inputs =
      declare_packed_inputs(graph, step_tensor::batch, model, batch.tokens, batch.positions);
  ForwardOptions forward;
  forward.layer_order = order;
  forward.row_length = batch.positions;
  forward.fp8_gradient_scale = batch.fp8_gradient_scale;
  Value hidden;
  forward.hidden = &hidden;
  const ParameterValues values(tape, layouts_of(parameters), true);
  const Value logits =
      transform_head(tape, model, values, build_forward(tape, model, values, inputs.forward, forward),
                     HeadUse::training_uncapped);
  const Value weight = graph.external(step_tensor::loss_weight, TensorType(MLG_F32, {batch.tokens}));
  const Value token_loss = attach_loss(tape, loss, model.softcap, hidden, logits, inputs.targets, weight);
  graph.call("sum_f64", {token_loss, graph.external(step_tensor::loss_sum, one_f64)});
  tape.backward(token_loss, weight);
  fuse_calls(graph, fused);
  return graph;
}

bool clips_before_reduction(const TrainConfig& train) {
  return train.clip_norm > 0 && train.clip_order != ClipOrder::after_reduction;
}

bool clips_each_micro_batch(const TrainConfig& train) {
  return train.clip_norm > 0 && train.clip_order == ClipOrder::each_micro_batch;
}

Graph build_unscale(const std::vector<PlannedParameter>& parameters) {
  Graph graph;
  const Value factor = graph.external(step_tensor::unscale, one_f32);
  for (const PlannedParameter& parameter : parameters) {
    if (parameter.trained()) graph.call("scale_by", {gradient(graph, parameter), factor});
  }
  return graph;
}

Graph build_clip(const std::vector<PlannedParameter>& parameters, double max_norm, const ClipScope& scope) {
  Graph graph;
  const auto is_slice = [&](const PlannedParameter& parameter) {
    return scope.slices && parameter.is_gathered(scope.world_size);
  };
  const Value total = graph.external(step_tensor::square_sum, one_f64);
  const Value scale = graph.external(step_tensor::clip_scale, one_f32);
  std::size_t groups = 0;
  for (const PlannedParameter& parameter : parameters) {
    if (parameter.trained()) groups = std::max(groups, parameter.optimizer + 1);
  }
  std::vector<Value> sums;
  for (std::size_t group = 0; group < groups; ++group) {
    sums.push_back(graph.external(group_square_sum_name(group), one_f64));
  }
  for (const PlannedParameter& parameter : parameters) {
    if (!parameter.trained() || is_slice(parameter)) continue;
    graph.call("sum_squares_f64", {gradient(graph, parameter), sums[parameter.optimizer]});
  }
  if (std::ranges::any_of(parameters, is_slice)) {
    const auto count = static_cast<std::int64_t>(groups);
    const Value slices = graph.external(step_tensor::slice_squares, TensorType(MLG_F64, {count}));
    for (std::int64_t group = 0; group < count; ++group) {
      graph.call("sum_f64", {graph.view(slices, group, one_f64), sums[static_cast<std::size_t>(group)]});
    }
  }
  for (const Value sum : sums) graph.call("sum_f64", {sum, total});
  graph.call("clip_scale", {total, graph.external(step_tensor::gradient_norm, one_f32), scale},
             {{"max_norm", max_norm}});
  if (max_norm == 0) return graph;
  Value factor = scale;
  if (scope.factor != 1) {
    factor = graph.scratch(one_f32, "scale");
    graph.call("axpby", {scale, Value{}, factor},
               {{"alpha", scope.factor}, {"beta", 0}, {"accumulate_y", 0}});
  }
  for (const PlannedParameter& parameter : parameters) {
    if (!parameter.trained()) continue;
    if (scope.slices && !parameter.is_updated_by(scope.rank, scope.world_size)) continue;
    if (!scope.scaled_by_update.empty() && scope.scaled_by_update[parameter.optimizer]) continue;
    const Value scaled = is_slice(parameter) ? graph.external(parameter.updated_gradient(scope.world_size),
                                                              parameter.updated_type(scope.world_size))
                                             : gradient(graph, parameter);
    graph.call("scale_by", {scaled, factor});
  }
  return graph;
}

FollowUp build_follow_up(Graph before, const std::vector<PlannedParameter>& parameters, const EmaConfig& ema,
                         int world_size, bool wrapped) {
  FollowUp built{{}, std::move(before)};
  Graph& graph = built.graph;
  build_refresh_copies(graph, layouts_of(parameters));
  built.averages = built.begin = graph.calls().size();
  if (ema.decay == 0) return built;
  const auto each = [&](auto&& record) {
    for (const PlannedParameter& parameter : parameters) {
      if (!parameter.averaged) continue;
      const TensorType type = parameter.updated_type(world_size);
      const std::string at_rest =
          wrapped ? rest_tensor(parameter, wrapped) : parameter.updated_master(world_size);
      record(graph.external(updated_average_name(parameter, world_size), type),
             graph.external(at_rest, type.as(parameter.layout.master)));
    }
  };
  each([&](Value average, Value rest) { graph.call("lerp_into", {average, rest}, {{"decay", ema.decay}}); });
  built.begin = graph.calls().size();
  if (ema.from_step > 0) each([&](Value average, Value rest) { graph.call("cast", {rest, average}); });
  return built;
}

Graph build_refresh(const std::vector<PlannedParameter>& parameters) {
  Graph graph;
  build_refresh_copies(graph, layouts_of(parameters));
  return graph;
}

Graph build_record(std::int64_t capacity) {
  Graph graph;
  const TensorType ring(MLG_F64, {capacity});
  const Value index = graph.external(step_tensor::ring_index, TensorType(MLG_I64, {1}));
  graph.call("record_scalar", {graph.external(step_tensor::loss_sum, one_f64), index,
                               graph.external(step_tensor::loss_ring, ring)});
  graph.call("record_scalar", {graph.external(step_tensor::gradient_norm, one_f32), index,
                               graph.external(step_tensor::norm_ring, ring)});
  return graph;
}

namespace {

void record_at_once(Graph& graph, const Loss& loss, const mlg_loss_backward& both) {
  GraphRecorder recorder(graph, "loss");
  loss.record_forward_backward(*recorder.table(), both);
}

// Whether the backend has the kernels that the loss records for both passes in one: found by recording them
// into another graph.
bool can_be_at_once(const FusedKernels& fused, const Loss& loss, const mlg_loss_backward& both,
                    const TensorType& logits, const TensorType& per_token) {
  if (!loss.has_forward_backward()) return false;
  Graph trial;
  mlg_loss_backward same = both;
  same.forward.logits = same.logits_gradient = trial.external("logits", logits).id;
  same.forward.targets = trial.external("targets", per_token.as(MLG_I32)).id;
  same.forward.token_loss = trial.external("token_loss", per_token).id;
  same.upstream = trial.external("upstream", per_token).id;
  record_at_once(trial, loss, same);
  return have_kernels_of(fused, trial);
}

}  // namespace

Value attach_loss(Tape& tape, const Loss& loss, double cap, Value hidden, Value logits, Value targets,
                  Value upstream) {
  Graph& graph = tape.graph();
  const bool fuses = loss.fuses_softcap(), reads_hidden = loss.reads_hidden();
  if (cap > 0 && !fuses) logits = ops::softcap(tape, logits, cap);
  const TensorType per_token(MLG_F32, {graph.type(targets).dims[0]});
  const Value token_loss = graph.scratch(per_token, "token_loss");

  mlg_loss_forward forward{logits.id,         targets.id, token_loss.id,
                           fuses ? cap : 0.0, {},         reads_hidden ? hidden.id : 0};
  const mlg_loss_backward both{forward, upstream.id, logits.id, 0, 0};
  if (upstream && can_be_at_once(tape.fused(), loss, both, graph.type(logits), per_token)) {
    record_at_once(graph, loss, both);
    tape.record({token_loss}, {logits}, [=](Backward& b) {
      if (b.of(token_loss) != upstream || b.into_storage_of(logits, logits).value != logits) {
        throw std::logic_error("the gradient of the logits was computed for another upstream gradient");
      }
    });
    return token_loss;
  }
  GraphRecorder recorder(graph, "loss");
  loss.record_forward(*recorder.table(), forward);
  std::vector<Value> inputs = {logits};
  if (reads_hidden) inputs.push_back(hidden);
  tape.record({token_loss}, std::move(inputs), [=, &loss](Backward& b) {
    GraphRecorder backward_recorder(b.graph(), "loss");
    const Value of_loss = b.of(token_loss), of_logits = b.into_storage_of(logits, logits).value;
    const Backward::Target of_hidden = reads_hidden ? b.into(hidden) : Backward::Target();
    loss.record_backward(*backward_recorder.table(),
                         {forward, of_loss.id, of_logits.id, of_hidden.value.id, of_hidden.accumulate});
  });
  return token_loss;
}

}  // namespace mulligan
