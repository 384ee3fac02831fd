#include "framework/check/loss_probe.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

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
  if (reads_hidden_) forward.hidden = graph.external("hidden", hidden_type).id;
  backward.upstream = graph.external("upstream", per_token).id;
  backward.logits_gradient = in_place_ ? forward.logits : graph.external("logits_gradient", logits).id;
  GraphRecorder recorder(graph, "loss");
  if (passes == LossPasses::in_one) {
    loss.record_forward_backward(*recorder.table(), backward);
    return graph;
  }
  loss.record_forward(*recorder.table(), forward);
  if (reads_hidden_) backward.hidden_gradient = graph.external("hidden_gradient", hidden_type).id;
  loss.record_backward(*recorder.table(), backward);
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

namespace {

constexpr std::int64_t rows = 16;

// Equal logits, targets all over the vocabulary.
LossInputs equal_logits(const LossShape& shape) {
  LossInputs inputs = sample_loss_inputs(shape);
  std::ranges::fill(inputs.logits, 0.0F);
  std::ranges::fill(inputs.upstream, 1.0F);
  std::ranges::fill(inputs.hidden, 0.0F);
  for (std::int64_t row = 0; row < rows; ++row) {
    inputs.targets[static_cast<std::size_t>(row)] =
        static_cast<std::int32_t>(row * (shape.vocabulary - 1) / (rows - 1));
  }
  return inputs;
}

double mean_of(const std::vector<float>& losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

// The largest; NaN where one is.
double largest_of(const std::vector<float>& losses) {
  double largest = static_cast<double>(losses.front());
  for (const float loss : losses) {
    if (!(static_cast<double>(loss) <= largest)) largest = static_cast<double>(loss);
  }
  return largest;
}

}  // namespace

LossValues loss_values(Backend& backend, const Loss& loss, int vocabulary, double softcap, DType compute) {
  const LossShape shape{rows, vocabulary, 8, compute, softcap};
  LossProbe probe(backend, loss, shape, false);
  LossInputs inputs = equal_logits(shape);
  const auto v = static_cast<std::size_t>(vocabulary);
  probe.set(inputs);
  const LossOutputs equal = probe.run();
  LossValues values;
  values.equal = mean_of(equal.token_loss);
  for (std::size_t row = 0; row < rows; ++row) {
    double gradient = 0;
    for (std::size_t i = 0; i < v; ++i) {
      const auto one = static_cast<double>(equal.logits_gradient[row * v + i]);
      const double own = i == static_cast<std::size_t>(inputs.targets[row]) ? 1 : 0;
      gradient += one;
      const double off = std::abs(one - (1 / static_cast<double>(v) - own));
      if (!(off <= values.furthest)) values.furthest = off;
    }
    if (!(std::abs(gradient) <= values.largest_row_sum)) values.largest_row_sum = std::abs(gradient);
  }
  constexpr float certain = 150;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < v; ++i) {
      inputs.logits[row * v + i] = i == static_cast<std::size_t>(inputs.targets[row]) ? certain : -certain;
    }
  }
  probe.set(inputs);
  values.certain = largest_of(probe.run().token_loss);
  // A softcap lets logits be no further apart than twice itself, and leaves the others a share.
  const double cap = softcap > 0 ? softcap * std::tanh(certain / softcap) : certain;
  values.softcap_leaves = std::log1p((static_cast<double>(v) - 1) * std::exp(-2 * cap));
  return values;
}

double uniform_slack(int vocabulary, DType compute) {
  return (compute == MLG_F32 ? 1e-4 : 2e-3) * std::log(vocabulary);
}

bool is_in_bits(double equal, int vocabulary) {
  const double nats = std::log(vocabulary);
  return std::abs(equal * std::numbers::ln2 - nats) < 0.01 * nats;
}

std::string loss_value_problem(const LossValues& values, bool is_cross_entropy, int vocabulary,
                               DType compute) {
  if (!is_cross_entropy) {
    if (values.certain < values.equal) return {};
    return fmt::format(
        "logits that name the target have a loss of {:.4g}, equal logits "
        "one of {:.4g}: it must fall as the target becomes more likely",
        values.certain, values.equal);
  }
  const double nats = std::log(vocabulary);
  const bool bits = is_in_bits(values.equal, vocabulary);
  if (!bits && values.equal >= nats - uniform_slack(vocabulary, compute)) return {};
  return fmt::format(
      "the loss of equal logits is {:.5f}, but ln {} is {:.5f} nats{}; a loss that is not a cross entropy in "
      "nats must declare it (cross_entropy = false in its class)",
      values.equal, vocabulary, nats, bits ? " (it is log2 of it: the loss is in bits)" : "");
}

}  // namespace mulligan
