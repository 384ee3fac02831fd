#include "framework/check/loss_probe.h"

#include "framework/graph/graph_recorder.h"

namespace mulligan {
LossInputs sample_loss_inputs(const LossShape& shape) {
  LossInputs inputs;
  const auto tokens = static_cast<std::size_t>(shape.tokens);
  inputs.logits = sample(tokens * static_cast<std::size_t>(shape.vocabulary), 1, 2.0f);
  inputs.hidden = sample(tokens * static_cast<std::size_t>(shape.width), 2);
  inputs.upstream = sample(tokens, 3);
  for (std::size_t t = 0; t < tokens; ++t) {
    inputs.targets.push_back(
        t == 2 ? -1 : static_cast<std::int32_t>((7 * t + 1) % static_cast<std::size_t>(shape.vocabulary)));
  }
  return inputs;
}

LossProbe::LossProbe(Backend& backend, const Loss& loss, const LossShape& shape, bool in_place,
                     LossPasses passes)
    : in_place_(in_place),
      reads_hidden_(loss.reads_hidden()),
      run_(backend, record(loss, shape, passes), "check of the loss") {
  for (const std::string& state : states_) run_.keep(state);
}

Graph LossProbe::record(const Loss& loss, const LossShape& shape, LossPasses passes) {
  Graph graph;
  const TensorType per_token(MLG_F32, {shape.tokens});
  const TensorType logits(shape.dtype, {shape.tokens, shape.vocabulary});
  const TensorType hidden_type(shape.dtype, {shape.tokens, shape.width});
  mlg_loss_backward backward{};
  mlg_loss_forward& forward = backward.forward;
  forward.logits = graph.external("logits", logits).id;
  forward.targets = graph.external("targets", per_token.as(MLG_I32)).id;
  forward.token_loss = graph.external("token_loss", per_token).id;
  forward.softcap = loss.fuses_softcap() ? shape.softcap : 0;
  mlg_loss_hidden hidden{};
  if (reads_hidden_) hidden.hidden = graph.external("hidden", hidden_type).id;
  backward.upstream = graph.external("upstream", per_token).id;
  backward.logits_gradient = in_place_ ? forward.logits : graph.external("logits_gradient", logits).id;
  GraphRecorder recorder(graph, "loss");
  if (passes == LossPasses::in_one) {
    loss.record_forward_backward(*recorder.table(), backward);
    return graph;
  }
  if (reads_hidden_) {
    loss.record_forward(*recorder.table(), forward, hidden);
    hidden.gradient = graph.external("hidden_gradient", hidden_type).id;
    loss.record_backward(*recorder.table(), backward, hidden);
  } else {
    loss.record_forward(*recorder.table(), forward);
    loss.record_backward(*recorder.table(), backward);
  }
  states_ = recorder.states();
  return graph;
}

void LossProbe::set(const LossInputs& inputs) {
  run_.set("logits", inputs.logits);
  run_.set("targets", inputs.targets);
  run_.set("upstream", inputs.upstream);
  if (reads_hidden_) run_.set("hidden", inputs.hidden);
}

LossOutputs LossProbe::run(std::uint8_t poison) {
  run_.run(poison);
  LossOutputs outputs{run_.floats("token_loss"), run_.floats(in_place_ ? "logits" : "logits_gradient"), {}};
  if (reads_hidden_) outputs.hidden_gradient = run_.floats("hidden_gradient");
  return outputs;
}

std::string loss_outputs_problem(Backend& backend, const Loss& loss, const LossShape& shape,
                                 LossPasses passes) {
  LossProbe probe(backend, loss, shape, false, passes);
  probe.set(sample_loss_inputs(shape));
  const LossOutputs after_nan = probe.run(poison_nan);
  return written_problem(after_nan.named(), probe.run(poison_number).named());
}

}  // namespace mulligan
