// Training steps of several ranks, each an engine in a thread of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "framework/data/loader.h"
#include "framework/ranks/communicator.h"
#include "framework/step/engine.h"
#include "framework/step/snapshot.h"
#include "framework/step/step_graphs.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"
#include "tests/support/thread_world.h"

namespace mulligan::end_to_end {

inline std::vector<std::filesystem::path> shards() {
  return find_shards({tiny().config({}).config.data.train}, DataSplit::train);
}

// One rank's engine with its rows.
struct Rank {
  Rank(const Overrides& overrides, Communicator& communicator,
       const std::vector<std::filesystem::path>& of = shards())
      : loaded(tiny().config(overrides)),
        plugins(
            (resolve_run_plugins(loaded, test_plugin_host()), make_run_plugins(loaded, test_plugin_host()))),
        parameters(plan_parameters(loaded.config)),
        groups(loaded.config, plugins, parameters),
        engine(loaded.config, "backend", plugins, parameters, groups, communicator, 8),
        arena(*plugins.backend) {
    arena.bind(engine.programs(), engine.store());
    LoaderOptions options;
    options.shards = of;
    options.row_tokens = tokens_per_micro_batch(loaded.config.train);
    options.max_segment_tokens = loaded.config.train.sequence_length;
    options.world_size = communicator.world_size();
    options.rank = communicator.rank();
    options.group_spans = loaded.config.train.micro_batches;
    if (loaded.config.data.documents == DataDocuments::joined) options.bos_id = kNoDocuments;
    rows = std::make_unique<Prefetcher>(std::make_unique<Loader>(options), 4);
  }
  void steps(std::int64_t first, std::int64_t last) {
    for (std::int64_t number = first; number <= last; ++number) {
      groups.set_rates({number - 1, 10, 0, 0});
      engine.set_noise(noise_sigma(loaded.config.noise, loaded.config.phases.front(), number - 1, 0),
                       number - 1);
      engine.step(number, *rows);
      engine.record_metrics(number - 1);
    }
  }

  LoadedConfig loaded;
  RunPlugins plugins;
  std::vector<PlannedParameter> parameters;
  OptimizerGroups groups;
  TrainingEngine engine;
  SharedArena arena;
  std::unique_ptr<Prefetcher> rows;
};

// One rank alone, ready to step.
struct OwnCommunicator {
  std::unique_ptr<Communicator> own = make_self_communicator();
};
struct Alone : OwnCommunicator, Rank {
  explicit Alone(const Overrides& overrides, const std::vector<std::filesystem::path>& of = shards())
      : Rank(overrides, *own, of) {
    engine.initialise(3);
    groups.set_rates({0, 10, 0, 0});
  }
};

// What a run of some steps leaves: the whole state by name, as rank 0 has it, losses and gradient norms.
struct Outcome {
  std::map<std::string, std::vector<std::byte>> state;
  std::vector<StepMetrics> metrics;
  double noise_ratio = 0;  // of the last step
};

// Of all ranks alike; the first one's has the state.
inline Outcome outcome_of(TrainingEngine& engine, bool is_first, std::int64_t first, std::int64_t last) {
  Outcome outcome;
  engine.refresh_evaluation_weights();
  for (const StateTensor& tensor : engine.gather_state()) {
    if (is_first) outcome.state[tensor.name] = tensor.read(engine.store());
  }
  outcome.metrics = engine.read_metrics(first, last);
  outcome.noise_ratio = engine.noise_ratio().value_or(0);
  return outcome;
}

// The ranks of a run, made one after the other, for plugins are loaded while nothing else runs.
struct Ranks {
  Ranks(int size, const Overrides& overrides) : world(size) {
    for (int rank = 0; rank < size; ++rank)
      all.push_back(std::make_unique<Rank>(overrides, world.rank(rank)));
  }
  // body(number, rank) in a thread for each of them, with its first weights.
  template <typename Body>
  void run(Body&& body) {
    world.run([&](int number, Communicator&) {
      Rank& rank = *all[static_cast<std::size_t>(number)];
      rank.engine.initialise(3);
      body(number, rank);
    });
  }

  ThreadWorld world;
  std::vector<std::unique_ptr<Rank>> all;
};

inline Outcome train(int size, const Overrides& overrides, int steps = 3) {
  Outcome outcome;
  Ranks(size, overrides).run([&](int number, Rank& rank) {
    rank.steps(1, steps);
    Outcome mine = outcome_of(rank.engine, number == 0, 0, steps);
    if (number == 0) outcome = std::move(mine);
  });
  return outcome;
}

inline std::vector<float> floats_of(const Outcome& outcome, const std::string& name) {
  const auto& bytes = outcome.state.at(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline void expect_close(const Outcome& a, const Outcome& b, double tolerance) {
  ASSERT_EQ(a.state.size(), b.state.size());
  for (const auto& [name, bytes] : a.state) {
    if (!name.starts_with("master/")) continue;
    ASSERT_EQ(bytes.size(), b.state.at(name).size()) << name;
    const std::vector<float> x = floats_of(a, name), y = floats_of(b, name);
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      largest = std::max<double>(largest, std::abs(x[i]));
      difference = std::max<double>(difference, std::abs(x[i] - y[i]));
    }
    EXPECT_LE(difference, tolerance * largest + 1e-7) << name;
  }
  for (std::size_t i = 0; i < a.metrics.size(); ++i) {
    EXPECT_NEAR(a.metrics[i].loss_sum_nats, b.metrics[i].loss_sum_nats,
                tolerance * a.metrics[i].loss_sum_nats);
    EXPECT_NEAR(a.metrics[i].gradient_norm, b.metrics[i].gradient_norm,
                tolerance * a.metrics[i].gradient_norm);
  }
}

inline void expect_equal(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.state.size(), b.state.size());
  for (const auto& [name, bytes] : a.state) EXPECT_EQ(bytes, b.state.at(name)) << name;
  ASSERT_EQ(a.metrics.size(), b.metrics.size());
  for (std::size_t i = 0; i < a.metrics.size(); ++i) {
    EXPECT_EQ(a.metrics[i].loss_sum_nats, b.metrics[i].loss_sum_nats) << i;
    EXPECT_EQ(a.metrics[i].gradient_norm, b.metrics[i].gradient_norm) << i;
  }
}

inline const Overrides base = {"train.micro_batches=4", "train.tokens_per_step=256",
                               "train.sequence_length=64"};
inline const Overrides cut = {"parameters.0.communication=sharded"};
inline const Overrides owned = {"parameters.0.communication=owner"};
inline const Overrides world_mode = {"run.determinism=world"};

}  // namespace mulligan::end_to_end
