// What a prediction says that a step launches, against what the emulated device runs, call by call.
#include <gtest/gtest.h>

#include <map>

#include "framework/model/packed_inputs.h"
#include "framework/step/step_graphs.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan::end_to_end::launch_count_test {
namespace {

struct Seen {
  int launches = 0, library_calls = 0;
  auto operator<=>(const Seen&) const = default;
};
Seen seen;

void count_line(int, std::string_view line) {
  seen.launches += line.starts_with("emulated launch of ");
  seen.library_calls += line.starts_with("emulated library call: ");
}

using PlaceOfCall = std::pair<std::string, std::size_t>;  // program, number of the call

LoadedConfig tiny(const std::string& dtype) {
  return TinyRun::config_without_data({"backend.plugin=cuda", "backend.graphs=false",
                                       "train.compute_dtype=" + dtype, "model.width=64",
                                       "model.head_width=16", "train.micro_batches=1"});
}

std::map<PlaceOfCall, Seen> predicted(const std::string& dtype) {
  LoadedConfig loaded = tiny(dtype);
  StepRehearsal rehearsal(loaded, test_plugin_host(), 1, 40);
  std::map<PlaceOfCall, Seen> calls;
  for (std::size_t phase = 0; phase < rehearsal.config().phases.size(); ++phase) {
    for (const StepEvent& event : rehearsal.step(phase)) {
      if (event.kind != StepEvent::Kind::call) continue;
      const mlg_work work = rehearsal.work(event);
      calls[{event.program->name(), event.call}] = {static_cast<int>(work.launches),
                                                    static_cast<int>(work.library_calls)};
      // The library's way has no launch around it, for rows of documents; the own way is one kernel.
      if (event.program->graph().calls()[event.call].kernel != "attention_fwd") continue;
      EXPECT_EQ(work.launches, dtype == "bf16" ? 0u : 1u);
      EXPECT_EQ(work.library_calls, dtype == "bf16" ? 1u : 0u);
    }
  }
  return calls;
}

std::map<PlaceOfCall, Seen> emulated(const std::string& dtype) {
  LoadedConfig loaded = tiny(dtype);
  loaded.config.backend.keys.put("device", ConfigNode::make_leaf(ConfigValue(std::string("emulated")), {}));
  loaded.config.backend.keys.put("log_launches", ConfigNode::make_leaf(ConfigValue(true), {}));
  resolve_run_plugins(loaded, test_plugin_host());
  OwnEngine own(loaded.config, {}, make_run_plugins(loaded, test_plugin_host()), 1);
  TrainingEngine& engine = own.engine;
  engine.make_ready();

  const std::int64_t tokens = tokens_per_micro_batch(loaded.config.train);
  const std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
  const std::vector<std::int32_t> boundaries{0, 20, 60, static_cast<std::int32_t>(tokens)};
  set_plugin_log_sink(count_line);
  seen = {};
  PackedInputWriter(step_tensor::batch, tokens).upload(engine.store(), ids, ids, boundaries);
  // The library's rows are computed as the boundaries come, once for all layers, both ways and both programs.
  EXPECT_EQ(seen.launches, dtype == "bf16" ? 1 : 0);
  std::map<PlaceOfCall, Seen> calls;
  for (const Program* program : engine.programs()) {
    for (std::size_t call = 0; call < program->handles().size(); ++call) {
      seen = {};
      own.plugins.backend->run(std::span(program->handles()).subspan(call, 1));
      calls[{program->name(), call}] = seen;
    }
  }
  set_plugin_log_sink(nullptr);
  return calls;
}

void expect_the_same(const std::string& dtype, int least_library_calls) {
  const std::map<PlaceOfCall, Seen> plan = predicted(dtype), run = emulated(dtype);
  ASSERT_GT(plan.size(), 100u);
  Seen sum;
  for (const auto& [place, work] : plan) {
    const Seen& real = run.at(place);
    EXPECT_EQ(work.launches, real.launches) << place.first << ", call " << place.second;
    EXPECT_EQ(work.library_calls, real.library_calls) << place.first << ", call " << place.second;
    sum.launches += real.launches;
    sum.library_calls += real.library_calls;
  }
  EXPECT_GT(sum.launches, static_cast<int>(plan.size()) / 2);
  EXPECT_GE(sum.library_calls, least_library_calls);
}

TEST(LaunchCount, IsThatOfTheEmulatedDeviceInFp32) {
  expect_the_same("fp32", 20);
}

// With a library's attention and the launches around it.
TEST(LaunchCount, IsThatOfTheEmulatedDeviceInBf16) {
  expect_the_same("bf16", 30);
}

}  // namespace
}  // namespace mulligan::end_to_end::launch_count_test
