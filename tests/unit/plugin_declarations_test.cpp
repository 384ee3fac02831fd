// What plugins say of themselves apart from what they compute: states that survive warm-up, queues, compiled
// kernels; and a backend that says nothing.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "framework/graph/graph_recorder.h"
#include "framework/plugin/optimizer.h"
#include "tests/support/built.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"

namespace mulligan::plugin_declarations_test {
namespace {

// The states that an optimiser makes for one parameter, and which of them survive warm-up.
std::map<std::string, bool> states_of(const std::string& name, const std::string& keys) {
  const auto optimizer = make_plugin<Optimizer>(PluginKind::optimizer, name, keys);
  Graph graph;
  GraphRecorder recorder(graph, "optimizer");
  const TensorType type(MLG_F32, {8, 8});
  const mlg_parameter parameter{"w", graph.external("w", type).id, graph.external("gradient", type).id, 1, 1};
  const auto scalars = static_cast<std::int64_t>(optimizer->scalar_count());
  optimizer->record(*recorder.table(), {&parameter, 1},
                    graph.external("scalars", TensorType(MLG_F32, {scalars})).id);
  std::map<std::string, bool> survives;
  for (const std::string& state : recorder.states()) {
    survives[state] = recorder.surviving().contains(state);
  }
  return survives;
}

TEST(PluginDeclarations, MomentumSurvivesWarmUpAndAveragesOfAdamwDoNot) {
  EXPECT_EQ(states_of("muon", ""), (std::map<std::string, bool>{{"optimizer/w.momentum_buffer", true}}));
  EXPECT_EQ(states_of("sgd", "momentum = 0.9"),
            (std::map<std::string, bool>{{"optimizer/w.momentum_buffer", true}}));
  EXPECT_EQ(states_of("adamw", ""),
            (std::map<std::string, bool>{{"optimizer/w.exp_avg", false}, {"optimizer/w.exp_avg_sq", false}}));
}

// What is not a state cannot survive.
TEST(PluginDeclarations, OnlyAStateCanBeDeclaredToSurvive) {
  Graph graph;
  const GraphRecorder recorder(graph, "optimizer.matrices");
  const mlg_recorder& table = *recorder.table();
  const mlg_tensor shape = TensorType(MLG_F32, {4}).to_c();
  mlg_value scratch = 0, state = 0;
  ASSERT_EQ(table.scratch(table.self, &shape, &scratch), nullptr);
  ASSERT_EQ(table.state(table.self, "w.sum", &shape, &state), nullptr);
  const mlg_error refusal = table.survives_warmup(table.self, scratch);
  ASSERT_NE(refusal, nullptr);
  EXPECT_TRUE(contains(std::string(refusal), "is not a state")) << refusal;
  EXPECT_TRUE(recorder.surviving().empty());
  EXPECT_EQ(table.survives_warmup(table.self, state), nullptr);
  EXPECT_EQ(recorder.surviving(), std::set<std::string>{"optimizer.matrices/w.sum"});
}

TEST(PluginDeclarations, ABackendThatTakesNoCompiledKernelSaysSo) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  const std::string sentence =
      sentence_of([&] { backend->replace_kernel("cast", "cast.ptx", "run.toml:7"); });
  EXPECT_TRUE(contains(sentence, "takes no compiled kernels"));
  EXPECT_TRUE(contains(sentence, "run.toml:7"));
}

TEST(PluginDeclarations, BackendsSayWhereTransfersStand) {
  EXPECT_EQ(make_cpu_backend(1)->queue().kind, MLG_QUEUE_HOST);
  EXPECT_EQ(make_plugin<Backend>(PluginKind::backend, "null")->queue().kind, MLG_QUEUE_NONE);
  EXPECT_EQ(make_plugin<Backend>(PluginKind::backend, "cuda", "device = \"emulated\"")->queue().kind,
            MLG_QUEUE_NONE);
}

TEST(PluginDeclarations, WhatABackendMayLeaveNullHasADefault) {
  const PluginHandle plugin =
      test_plugin_host().load(PluginKind::backend, "minimal_backend",
                              test_support::built("bad_plugins") / "mulligan_minimal_backend.so");
  Backend backend(plugin, test_plugin_config(plugin));
  EXPECT_EQ(backend.queue().kind, MLG_QUEUE_NONE);
  EXPECT_EQ(backend.promises(), MLG_DETERMINISM_NONE);
  backend.mark(0);
  backend.await(0);
  EXPECT_TRUE(backend.made().empty());
  const std::string sentence = sentence_of([&] { backend.work(nullptr); });
  EXPECT_TRUE(contains(sentence, "does not say what its calls launch"));
}

}  // namespace
}  // namespace mulligan::plugin_declarations_test
