#include "framework/step/loss_node.h"

#include "framework/graph/graph_recorder.h"
#include "framework/graph/ops/softcap.h"

namespace mulligan {

Value attach_loss(Tape& tape, const Loss& loss, double cap, Value hidden, Value logits, Value targets) {
  Graph& graph = tape.graph();
  const bool fuses = loss.fuses_softcap(), reads_hidden = loss.reads_hidden();
  if (cap > 0 && !fuses) logits = ops::softcap(tape, logits, cap);
  const Value token_loss = graph.scratch(TensorType(MLG_F32, {graph.type(targets).dims[0]}), "token_loss");

  mlg_loss_forward forward{logits.id, targets.id, token_loss.id, fuses ? cap : 0.0, {}};
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
