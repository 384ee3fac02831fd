// Graph, memory plan and tape without a backend: structure only.
#include "framework/graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "framework/graph/graph_recorder.h"
#include "framework/graph/program.h"
#include "framework/graph/tape.h"
#include "kernels/concat_rows/op.h"
#include "kernels/matmul/op.h"
#include "kernels/rms_norm/op.h"
#include "kernels/scaled_add_norm/op.h"
#include "tests/support/sentence.h"

namespace mulligan::graph_test {
namespace {

const TensorType row(MLG_F32, {64}), square(MLG_F32, {4, 4});

// A backend need not bring symmetric_matmul; plugins record it in any case.
TEST(GraphRecorder, SymmetricMatmulsBecomeMatmulsWithoutTheKernel) {
  Graph graph;
  const Value a = graph.external("a", square), c = graph.external("c", square);
  const GraphRecorder recorder(graph, "state");
  const mlg_value arguments[] = {a.id, a.id, c.id};
  const mlg_attribute attributes[] = {{"transpose_a", 0}, {"transpose_b", 1}, {"alpha", 1}, {"beta", 0}};
  const mlg_recorder& table = *recorder.table();
  ASSERT_EQ(table.launch(table.self, "symmetric_matmul", arguments, 3, attributes, 4), nullptr);
  ASSERT_EQ(graph.calls().size(), 1u);
  EXPECT_EQ(graph.calls()[0].kernel, "matmul");
  EXPECT_EQ(graph.calls()[0].arguments, (std::vector<Value>{a, a, c}));
  EXPECT_EQ(graph.calls()[0].attributes.size(), 4u);
}

// A state takes memory and a place in checkpoints, so one that no call names is an error of the plugin.
TEST(GraphRecorder, AStateThatNoCallNamesIsRefused) {
  Graph graph;
  const mlg_tensor shape = square.to_c();
  const Value gradient = graph.external("gradient", square);
  const GraphRecorder recorder(graph, "state");
  const mlg_recorder& table = *recorder.table();
  mlg_value used = 0, part = 0, idle = 0;
  const mlg_tensor row = TensorType(MLG_F32, {4}).to_c();
  ASSERT_EQ(table.state(table.self, "used", &shape, 0, &used), nullptr);
  ASSERT_EQ(table.view(table.self, used, 4, &row, &part), nullptr);
  const mlg_value arguments[] = {graph.view(gradient, 0, TensorType(MLG_F32, {4})).id, part};
  ASSERT_EQ(table.launch(table.self, "cast", arguments, 2, nullptr, 0), nullptr);
  EXPECT_EQ(recorder.states(), std::vector<std::string>{"state/used"});
  ASSERT_EQ(table.state(table.self, "idle", &shape, 0, &idle), nullptr);
  EXPECT_TRUE(refuses([&] { static_cast<void>(recorder.states()); }, "no call names the state 'state/idle'"));
}

TEST(Graph, ViewsOfViewsPointIntoTheOneBase) {
  Graph graph;
  const Value bank = graph.external("bank", TensorType(MLG_F32, {4, 3, 2}));
  const Value matrix = graph.slice(bank, 2);
  const Value line = graph.slice(matrix, 1);
  EXPECT_EQ(graph.root(line), bank);
  EXPECT_EQ(graph.info(line).offset, 2 * 6 + 2);
  EXPECT_EQ(graph.type(line), TensorType(MLG_F32, {2}));
  EXPECT_THROW(graph.view(line, 1, TensorType(MLG_F32, {2})), std::logic_error);
  EXPECT_THROW(graph.view(bank, 0, TensorType(MLG_BF16, {2})), std::logic_error);
}

TEST(Graph, ExternalsAreOnePerNameAndKeepTheirType) {
  Graph graph;
  const Value first = graph.external("x", row);
  EXPECT_EQ(graph.external("x", row), first);
  EXPECT_THROW(graph.external("x", TensorType(MLG_F32, {65})), std::logic_error);
}

// Random graphs: no two values that live at the same time share a byte.
TEST(MemoryPlan, ValuesAliveTogetherNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Graph graph;
    std::vector<Value> values;
    for (int i = 0; i < 40; ++i) {
      const Value made = graph.scratch(TensorType(MLG_F32, {1 + static_cast<std::int64_t>(random() % 3000)}));
      std::vector<Value> arguments = {made};
      for (int j = 0; j < 2 && !values.empty(); ++j) arguments.push_back(values[random() % values.size()]);
      values.push_back(made);
      graph.call("kernel", arguments);
    }
    const MemoryPlan plan = plan_memory(graph);
    const auto last_mention = [&](Value value) {
      std::size_t last = 0;
      for (std::size_t i = 0; i < graph.calls().size(); ++i) {
        if (std::ranges::count(graph.calls()[i].arguments, value) > 0) last = i;
      }
      return last;
    };
    for (std::size_t a = 0; a < values.size(); ++a) {
      for (std::size_t b = a + 1; b < values.size(); ++b) {
        if (last_mention(values[a]) < b) continue;  // a is dead before b is made
        const std::int64_t start_a = plan.offset[values[a].id], start_b = plan.offset[values[b].id];
        const bool apart = start_a + graph.type(values[a]).bytes() <= start_b ||
                           start_b + graph.type(values[b]).bytes() <= start_a;
        EXPECT_TRUE(apart) << "values " << a << " and " << b;
      }
    }
  }
}

TEST(MemoryPlan, AChainNeedsTwoBuffers) {
  Graph graph;
  Value x = graph.scratch(row);
  graph.call("make", {x});
  for (int i = 0; i < 10; ++i) {
    const Value y = graph.scratch(row);
    graph.call("step", {x, y});
    x = y;
  }
  EXPECT_EQ(plan_memory(graph).arena_bytes, 2 * arena_alignment);
}

// In an evaluation, and for leaves without a gradient.
TEST(Tape, NothingIsEmittedWithoutANeed) {
  for (const bool watched : {false, true}) {
    Graph graph;
    Tape tape(graph, !watched);
    const Value weight = graph.external("w", square);
    if (watched) tape.watch(weight, graph.external("dw", square));
    const Value y = ops::linear(tape, graph.external("x", square), weight, square);
    tape.backward(y, graph.external("seed", square));
    EXPECT_EQ(graph.calls().size(), 1U);
  }
}

// Packed once and used twice: matmuls write and then add to one f32 gradient, and each leaf gets its rows of it.
TEST(Tape, APackedWeightHasOneGradientInF32) {
  Graph graph;
  Tape tape(graph, true);
  const TensorType x_type(MLG_BF16, {6, 4});
  const Value a = graph.external("a", TensorType(MLG_BF16, {3, 4})),
              b = graph.external("b", TensorType(MLG_BF16, {1, 4}));
  tape.watch(a, graph.external("da", TensorType(MLG_F32, {3, 4})));
  tape.watch(b, graph.external("db", TensorType(MLG_F32, {1, 4})));
  const Value packed = ops::concat_rows(tape, std::vector<Value>{a, b}, 4, 4);
  const Value once = ops::linear(tape, graph.external("x", x_type), packed, x_type);
  const Value twice = ops::linear(tape, once, packed, x_type);
  tape.backward(twice, graph.external("seed", x_type));
  std::vector<double> betas;  // of the matmuls that make the gradient of the packed weight
  Value gradient;
  for (const Call& call : graph.calls()) {
    if (call.kernel != "matmul" || call.attributes[0].value == 0) continue;
    betas.push_back(call.attributes[3].value);
    EXPECT_EQ(graph.type(call.arguments[2]), TensorType(MLG_F32, {4, 4}));
    if (gradient) {
      EXPECT_EQ(call.arguments[2], gradient);
    }
    gradient = call.arguments[2];
  }
  EXPECT_EQ(betas, (std::vector<double>{0, 1}));
  const Call& last = graph.calls().back();
  EXPECT_EQ(last.kernel, "concat_rows_bwd");
  EXPECT_EQ(last.arguments[0], gradient);
  EXPECT_EQ(graph.info(graph.root(last.arguments[1])).name, "da");
  EXPECT_EQ(graph.info(graph.root(last.arguments[2])).name, "db");
  EXPECT_EQ(last.attributes[0].value, 3);  // the row of b
}

// A sum without a scale hands one gradient to both terms; a term that gets more adds to its own copy.
TEST(Tape, TermsShareAGradientUntilOneIsAddedTo) {
  for (const bool used_again : {false, true}) {
    SCOPED_TRACE(used_again);
    Graph graph;
    Tape tape(graph, true);
    const Value weight = graph.external("w", square);
    tape.watch(weight, graph.external("dw", square));
    const Value input = graph.external("input", square);
    const Value x = ops::linear(tape, input, weight, square), a = ops::linear(tape, input, weight, square);
    const Value other = used_again ? ops::rms_norm(tape, x, 1.0, 1e-6) : weight;
    const ops::ScaledSum sum = ops::scaled_add_norm(tape, x, a, Value{}, 1.0, 1e-6, true);
    const Value joined = ops::linear(tape, sum.norm, other, square);
    tape.backward(joined, graph.external("seed", square));
    std::vector<Value> of_matmuls;  // gradients of x and a, as the matmuls that made them read them
    Value of_sum, copied;
    for (const Call& call : graph.calls()) {
      if (call.kernel == "matmul" && graph.root(call.arguments[1]) == input && call.attributes[0].value == 1)
        of_matmuls.push_back(call.arguments[0]);
      if (call.kernel == "axpby") copied = call.arguments[2];
      if (call.kernel == "scaled_add_norm_bwd") {
        of_sum = call.arguments[5];
        EXPECT_FALSE(call.arguments[1]);
        EXPECT_FALSE(call.arguments[6]) << "a's gradient is that of x";
      }
    }
    ASSERT_EQ(of_matmuls.size(), 2U);
    ASSERT_TRUE(of_sum);
    EXPECT_EQ(graph.root(of_matmuls[0]), of_sum) << "of a";
    EXPECT_EQ(graph.root(of_matmuls[1]), used_again ? copied : of_sum) << "of x";
    EXPECT_EQ(static_cast<bool>(copied), used_again);
  }
}

}  // namespace
}  // namespace mulligan::graph_test
