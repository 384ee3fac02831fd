#include "framework/step/loss_node.h"

#include <stdexcept>

#include "framework/graph/graph_recorder.h"
#include "framework/graph/ops/softcap.h"
#include "framework/graph/trial_recording.h"

namespace mulligan {
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

  mlg_loss_forward forward{logits.id, targets.id, token_loss.id, fuses ? cap : 0.0, {}};
  const mlg_loss_backward both{forward, upstream.id, logits.id};
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
  if (reads_hidden) {
    loss.record_forward(*recorder.table(), forward, {hidden.id, 0, 0});
  } else {
    loss.record_forward(*recorder.table(), forward);
  }
  std::vector<Value> inputs = {logits};
  if (reads_hidden) inputs.push_back(hidden);
  tape.record({token_loss}, std::move(inputs), [=, &loss](Backward& b) {
    GraphRecorder backward_recorder(b.graph(), "loss");
    const mlg_loss_backward backward{forward, b.of(token_loss).id,
                                     b.into_storage_of(logits, logits).value.id};
    if (!reads_hidden) return loss.record_backward(*backward_recorder.table(), backward);
    const Backward::Target gradient = b.into(hidden);
    loss.record_backward(*backward_recorder.table(), backward,
                         {hidden.id, gradient.value.id, gradient.accumulate});
  });
  return token_loss;
}

}  // namespace mulligan
