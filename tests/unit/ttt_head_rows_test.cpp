// Windows with only some scored positions: losses and gradients are those of all positions with weight 0 for the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "framework/model/forward.h"
#include "framework/model/packed_inputs.h"
#include "framework/run/parameter_store.h"
#include "tests/unit/ttt_world.h"

namespace mulligan::ttt_head_rows_test {
namespace {

constexpr std::int64_t kDocuments = 3, kContext = 9;
constexpr const char* kEveryAdapter =
    "rank = 3\nalpha = 6.0\nq = true\nk = true\nv = true\nattention_output = true\nmlp = true\nhead = true";

struct Seen {
  std::vector<float> losses;                           // by scored position
  std::map<std::string, std::vector<float>> adapters;  // their gradients
};

// Positions [documents * scored] of the windows, with their weights.
Seen run(const TttRunner::Options& options, std::int64_t scored, const std::vector<std::int32_t>& positions,
         const std::vector<float>& weights) {
  TttRunner runner(options);
  runner.set_random_parameters(3);
  TensorStore& store = runner.store();
  refresh_copies(store, runner.model().layouts);
  const auto keep = [](Graph& graph, std::span<const AdapterTaps::Gradient> gradients) {
    for (const auto& [adapter, gradient] : gradients)
      graph.call("cast", {gradient, graph.external("kept/" + adapter->name, adapter->type)});
  };
  WindowProgram program(runner.model(), runner.adapters(), "ttt/test", {kDocuments, kContext, scored},
                        kContext, keep);
  SharedArena arena(store.backend());
  arena.bind({&program.program()}, store);
  upload_window_rope(runner.model(), kContext);
  for (const auto& adapter : program.adapters()) {
    std::vector<float> values(static_cast<std::size_t>(adapter->type.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 0.1F * std::sin(static_cast<float>(i + adapter->name.size()));
    if (adapter->copy.empty()) {
      store.upload(adapter->master, values);
    } else {
      std::vector<std::uint16_t> halves;
      for (const float value : values)
        halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
      store.upload(adapter->copy, halves);
    }
  }
  std::vector<std::int32_t> tokens, targets;
  for (std::int32_t i = 0; i < kDocuments * kContext; ++i)
    tokens.push_back((i * i + 5 * i + 2) % kTinyVocabulary);
  for (const std::int32_t position : positions) targets.push_back((position * 7 + 3) % kTinyVocabulary);
  program.set_inputs(tokens, positions, targets);
  program.set_weights(weights);
  program.forward();
  Seen seen;
  seen.losses = program.losses();
  program.update();
  for (const auto& adapter : program.adapters())
    seen.adapters[adapter->name] = store.download_as<float>("kept/" + adapter->name);
  return seen;
}

void expect_close(const std::vector<float>& seen, const std::vector<float>& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(seen.size(), expected.size()) << what;
  double scale = 0;
  for (const float value : expected) scale = std::max(scale, static_cast<double>(std::abs(value)));
  for (std::size_t i = 0; i < seen.size(); ++i)
    EXPECT_NEAR(seen[i], expected[i], tolerance * scale) << what << i;
}

// Two scored positions of each document; the second document has one, and an unused place at its first position.
void expect_the_same(const TttRunner::Options& options, double tolerance) {
  const std::vector<std::int32_t> some = {7, 8, 17, 9, 24, 26};
  const std::vector<float> weights = {0.5F, 1.0F, 0.25F, 0.0F, 2.0F, 1.0F};
  std::vector<std::int32_t> all;
  std::vector<float> sparse(kDocuments * kContext, 0.0F);
  for (std::int32_t i = 0; i < kDocuments * kContext; ++i) all.push_back(i);
  for (std::size_t i = 0; i < some.size(); ++i)
    if (weights[i] > 0) sparse[static_cast<std::size_t>(some[i])] = weights[i];
  const Seen seen = run(options, 2, some, weights), whole = run(options, kContext, all, sparse);
  std::vector<float> expected;
  for (const std::int32_t position : some)
    expected.push_back(whole.losses[static_cast<std::size_t>(position)]);
  expect_close(seen.losses, expected, tolerance, "loss ");
  ASSERT_FALSE(whole.adapters.empty());
  ASSERT_EQ(seen.adapters.size(), whole.adapters.size());
  for (const auto& [name, gradient] : whole.adapters) {
    EXPECT_TRUE(std::ranges::any_of(gradient, [](float value) { return value != 0; })) << name;
    expect_close(seen.adapters.at(name), gradient, tolerance, name + " ");
  }
}

TttRunner::Options options_of(const ModelConfig& model, LayerOrderKind order = LayerOrderKind::plain) {
  TttRunner::Options options = tiny_options(kEveryAdapter);
  options.model = model;
  options.layer_order = order;
  options.base = "none";
  return options;
}

TEST(TttHeadRows, LanesOrOneStreamBehindTheLastBlock) {
  for (const LayerOrderKind order : {LayerOrderKind::plain, LayerOrderKind::looped}) {
    expect_the_same(options_of(tiny_model(), order), 2e-5);
    TttRunner::Options bf16 = options_of(tiny_model(), order);
    bf16.compute = MLG_BF16;
    expect_the_same(bf16, 3e-2);
  }
  ModelConfig model = tiny_model();
  model.lanes.parallel_start = 0;
  expect_the_same(options_of(model), 2e-5);
}

TEST(TttHeadRows, OtherFamilies) {
  for (const ModelFamily family : {ModelFamily::qwen2, ModelFamily::modded}) {
    ModelConfig model;
    model.family = family;
    model.vocabulary = kTinyVocabulary, model.layers = 2, model.width = 16, model.heads = 2;
    if (family == ModelFamily::qwen2) model.kv_heads = 1, model.head_width = 10, model.mlp_hidden = 18;
    resolve_model_defaults(model);
    expect_the_same(options_of(model), 2e-5);
  }
}

// The MLP of the last of four blocks activates the wanted rows, those before it all nine.
TEST(TttHeadRows, TheLastBlockComputesTheScoredRowsAlone) {
  const auto backend = make_cpu_backend(1);
  for (const std::int64_t wanted : {2, 9}) {
    Graph graph;
    Tape tape(graph, false, FusedKernels(*backend));
    const ModelConfig model = tiny_model();
    const PackedInputs inputs = declare_packed_inputs(graph, "in", model, kContext, kContext);
    ForwardOptions options;
    options.row_length = kContext;
    options.head_rows = graph.external("rows", TensorType(MLG_I32, {wanted}));
    const std::vector<ParameterLayout> layouts = parameter_layouts(model, MLG_F32);
    const ParameterValues parameters(tape, layouts, false);
    const Value logits = build_forward(tape, model, parameters, inputs.forward, options);
    EXPECT_EQ(graph.type(logits).dims[0], wanted);
    std::map<std::int64_t, int> activations;  // by rows
    for (const Call& call : graph.calls()) {
      if (call.kernel == "leaky_relu_squared_fwd") ++activations[graph.type(call.arguments[0]).dims[0]];
    }
    const std::map<std::int64_t, int> expected = wanted == kContext
                                                     ? std::map<std::int64_t, int>{{9, 4}}
                                                     : std::map<std::int64_t, int>{{2, 1}, {9, 3}};
    EXPECT_EQ(activations, expected);
  }
}

}  // namespace
}  // namespace mulligan::ttt_head_rows_test
