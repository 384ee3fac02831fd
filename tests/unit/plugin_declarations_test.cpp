// What plugins declare, and the backend that computes nothing.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <map>

#include "framework/graph/graph_recorder.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/optimizer.h"
#include "tests/support/built.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"

namespace mulligan::plugin_declarations_test {
namespace {

// The states that an optimiser makes for one parameter, and which of them survive warm-up.
std::map<std::string, bool> states_of(const std::string& name, const std::string& keys) {
  const auto optimizer = make_plugin<Optimizer>(MLG_OPTIMIZER, name, keys);
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

TEST(PluginDeclarations, ABackendThatTakesNoCompiledKernelSaysSo) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  EXPECT_TRUE(refuses([&] { backend->replace_kernel("cast", "cast.ptx", "run.toml:7"); },
                      "takes no compiled kernels", "run.toml:7"));
}

TEST(PluginDeclarations, BackendsSayWhereTransfersStand) {
  EXPECT_EQ(make_cpu_backend(1)->queue().kind, MLG_QUEUE_HOST);
  EXPECT_EQ(make_plugin<Backend>(MLG_BACKEND, "null")->queue().kind, MLG_QUEUE_NONE);
  EXPECT_EQ(make_plugin<Backend>(MLG_BACKEND, "cuda", "device = \"emulated\"")->queue().kind, MLG_QUEUE_NONE);
}

TEST(PluginDeclarations, WhatABackendDoesNotOverrideHasADefault) {
  const PluginHandle plugin = test_plugin_host().load(
      MLG_BACKEND, "minimal_backend", test_support::built("bad_plugins") / "mulligan_minimal_backend.so");
  Backend backend(plugin, test_plugin_config(plugin));
  EXPECT_EQ(backend.queue().kind, MLG_QUEUE_NONE);
  EXPECT_EQ(backend.promises(), MLG_DETERMINISM_NONE);
  backend.mark(0);
  backend.await(0);
  EXPECT_TRUE(backend.made().empty());
  EXPECT_TRUE(refuses([&] { backend.work(nullptr); }, "does not know what its calls launch"));
}

std::unique_ptr<Backend> make() {
  return make_plugin<Backend>(MLG_BACKEND, "null");
}

TEST(NullBackend, HandsOutMoreThanAnyMachineHas) {
  const auto backend = make();
  constexpr std::size_t kBytes = std::size_t{80} << 30;
  DeviceBuffer first = backend->allocate(kBytes), second = backend->allocate(kBytes),
               none = backend->allocate(0);
  const auto a = reinterpret_cast<std::uintptr_t>(first.address()),
             b = reinterpret_cast<std::uintptr_t>(second.address());
  EXPECT_NE(a, 0u);
  EXPECT_EQ(a % 256, 0u);
  EXPECT_EQ(b % 256, 0u);
  EXPECT_TRUE(a + kBytes <= b || b + kBytes <= a) << "buffers must not overlap";
  EXPECT_EQ(none.address(), nullptr);
  backend->zero(first.address(), kBytes);
  backend->copy(second.address(), first.address(), kBytes);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 4 << 20) << "kilobytes resident: nothing of the 160 GB exists";
}

TEST(NullBackend, TransfersLeaveDefinedResults) {
  const auto backend = make();
  DeviceBuffer buffer = backend->allocate(16);
  std::array<float, 4> values{1, 2, 3, 4};
  backend->upload(buffer.address(), values.data(), 16);
  backend->download(values.data(), buffer.address(), 16);
  EXPECT_EQ(values, (std::array<float, 4>{0, 0, 0, 0}));
}

TEST(NullBackend, ACallMustBeBoundBeforeItRuns) {
  const auto backend = make();
  const mlg_tensor x{nullptr, MLG_F32, 1, {4, 1, 1, 1}};
  PreparedCall prepared = backend->prepare({"a_kernel_of_any_name", &x, 1, nullptr, 0});
  void* handle = prepared.handle();
  EXPECT_THROW(backend->run({&handle, 1}), Error);
}

}  // namespace
}  // namespace mulligan::plugin_declarations_test
