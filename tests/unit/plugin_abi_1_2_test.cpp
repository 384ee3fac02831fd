// Plugins built with the headers of ABI 1.2 go on working: what they cannot declare has a default, what was said to them in
// another way is still said so.
#include <gtest/gtest.h>

#include "framework/check/plugin_check.h"
#include "framework/graph/graph_recorder.h"
#include "framework/plugin/optimizer.h"
#include "tests/support/plugins.h"

namespace mulligan {
namespace {

PluginHandle old_plugin(PluginKind kind, const std::string& name) {
  return test_plugin_host().load(
      kind, name, std::filesystem::path(MULLIGAN_ABI_1_2_PLUGIN_DIRECTORY) / ("mulligan_" + name + ".so"));
}

// The states that `optimizer` makes for one parameter, and which of them survive warm-up.
std::map<std::string, bool> states_of(const Optimizer& optimizer) {
  Graph graph;
  GraphRecorder recorder(graph, "optimizer");
  const TensorType type(MLG_F32, {8, 8});
  const mlg_parameter parameter{"w", graph.external("w", type).id, graph.external("gradient", type).id, 1, 1};
  const auto scalars = static_cast<std::int64_t>(optimizer.scalar_count());
  optimizer.record(*recorder.table(), {&parameter, 1},
                   graph.external("scalars", TensorType(MLG_F32, {scalars})).id);
  std::map<std::string, bool> survives;
  for (const std::string& state : recorder.states()) {
    survives[state] = optimizer.survives_warmup(state, recorder.surviving().contains(state));
  }
  return survives;
}

TEST(PluginAbi12, TheMomentumOfAnOptimizerThatCannotDeclareItSurvivesWarmUp) {
  const PluginHandle plugin = old_plugin(PluginKind::optimizer, "old_momentum");
  EXPECT_EQ(plugin->abi(), "1.2");
  const std::map<std::string, bool> expected{{"optimizer/w.momentum", true}, {"optimizer/w.count", false}};
  EXPECT_EQ(states_of(Optimizer(plugin, test_plugin_config(plugin))), expected);
}

TEST(PluginAbi12, TodaysOptimizersDeclareIt) {
  const auto states = [](const std::string& name, const std::string& keys) {
    return states_of(*make_plugin<Optimizer>(PluginKind::optimizer, name, keys));
  };
  EXPECT_EQ(states("muon", ""), (std::map<std::string, bool>{{"optimizer/w.momentum_buffer", true}}));
  EXPECT_EQ(states("sgd", "momentum = 0.9"),
            (std::map<std::string, bool>{{"optimizer/w.momentum_buffer", true}}));
  EXPECT_EQ(states("adamw", ""),
            (std::map<std::string, bool>{{"optimizer/w.exp_avg", false}, {"optimizer/w.exp_avg_sq", false}}));
}

TEST(PluginAbi12, TheOldOptimizerPassesItsChecks) {
  const CheckList list = check_plugin(test_plugin_host(), old_plugin(PluginKind::optimizer, "old_momentum"));
  for (const CheckLine& line : list.lines()) EXPECT_EQ(line.problem, "") << line.what;
}

TEST(PluginAbi12, ABackendIsToldOfACompiledKernelAsBefore) {
  const PluginHandle plugin = old_plugin(PluginKind::backend, "old_backend");
  EXPECT_EQ(plugin->abi(), "1.2");
  Backend backend(plugin, test_plugin_config(plugin));
  try {
    backend.replace_kernel("old_kernel", "bad.ptx", "run.toml:7");
    ADD_FAILURE() << "a file was taken that the backend refuses";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the file is no good"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("run.toml:7"), std::string::npos) << error.what();
  }
  Backend other(plugin, test_plugin_config(plugin));
  other.replace_kernel("old_kernel", "good.ptx", "run.toml:7");
  EXPECT_STREQ(other.kernel_at(0)->entry, "good.ptx");
}

TEST(PluginAbi12, ABackendOfTodayThatTakesNoneSaysSo) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  try {
    backend->replace_kernel("cast", "cast.ptx", "run.toml:7");
    ADD_FAILURE() << "the cpu backend took a compiled kernel";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("takes no compiled kernels"), std::string::npos) << error.what();
  }
}

// What is no state cannot survive.
TEST(PluginAbi13, OnlyAStateCanBeDeclaredToSurvive) {
  Graph graph;
  const GraphRecorder recorder(graph, "optimizer.matrices");
  const mlg_recorder& table = *recorder.table();
  const mlg_tensor shape = TensorType(MLG_F32, {4}).to_c();
  mlg_value scratch = 0, state = 0;
  ASSERT_EQ(table.scratch(table.self, &shape, &scratch), nullptr);
  ASSERT_EQ(table.state(table.self, "w.sum", &shape, &state), nullptr);
  const mlg_error refusal = table.survives_warmup(table.self, scratch);
  ASSERT_NE(refusal, nullptr);
  EXPECT_NE(std::string(refusal).find("is no state"), std::string::npos) << refusal;
  EXPECT_TRUE(recorder.surviving().empty());
  EXPECT_EQ(table.survives_warmup(table.self, state), nullptr);
  EXPECT_EQ(recorder.surviving(), std::set<std::string>{"optimizer.matrices/w.sum"});
}

}  // namespace
}  // namespace mulligan
