// A tiny model and a made-up validation stream for tests of test-time training.
#pragma once

#include <optional>
#include <vector>

#include "framework/run/parameter_store.h"
#include "tests/support/small_config.h"
#include "tests/support/ttt_runner.h"

namespace mulligan {

inline constexpr std::int64_t kTinyVocabulary = 24;

inline ModelConfig tiny_model() {
  ModelConfig model = small_model(kTinyVocabulary, 4);
  model.loop.first = 1;
  model.loop.last = 2;
  model.loop.extra_passes = 1;
  model.lanes.parallel_start = 3;
  return model;
}

// Documents of these lengths (BOS included), one after the other; tokens 2 and up inside.
inline std::vector<std::uint16_t> made_up_stream(const std::vector<int>& lengths) {
  std::vector<std::uint16_t> tokens;
  std::uint32_t state = 12345;
  for (const int length : lengths) {
    tokens.push_back(1);
    for (int i = 1; i < length; ++i) {
      state = state * 1664525u + 1013904223u;
      tokens.push_back(static_cast<std::uint16_t>(2 + (state >> 16) % (kTinyVocabulary - 2)));
    }
  }
  return tokens;
}

inline TttRunner::Options tiny_options(const std::string& adapters = "rank = 3\nalpha = 6.0") {
  TttRunner::Options options;
  options.model = tiny_model();
  options.layer_order = LayerOrderKind::looped;
  options.adapters = adapters;
  options.optimizer_keys = "beta1 = 0.0\nbeta2 = 0.999\neps = 1e-10\nweight_decay = 1.0";
  options.lr = 0.02;
  options.base = "chunk_tokens = 16\nbatch_rows = 2\nlr = 0.01";
  options.row_tokens = 8;
  return options;
}

inline TttConfig tiny_config() {
  TttConfig config;
  config.batch_documents = 3;
  config.chunk_tokens = 5;
  config.context_tokens = 12;
  config.prefix_documents = 4;
  config.phases = 1;
  config.on_collapse = OnCollapse::off;
  return config;
}

// A run on a tiny model with random weights.
struct TinyRun {
  TttRunner::Options options = tiny_options();
  TttConfig config = tiny_config();
  std::vector<std::uint16_t> tokens = {};
  std::vector<float> without = {};
  std::int64_t lanes = 1;
  Communicator* communicator = nullptr;
  TttListener* listener = nullptr;
  const TttStanding* from = nullptr;
};

struct TinyOutcome {
  TttReport report;
  std::vector<float> losses;           // by stream position
  std::vector<TttStanding> standings;  // before each batch but the first; of one rank
};

// A scorer, and all that it refers to.
template <typename Run = TttScorer>
struct TinyScorer {
  explicit TinyScorer(const TinyRun& run) : how(run), runner(how.options), setup(runner.setup(how.config)) {
    runner.set_random_parameters(3);
    refresh_copies(runner.store(), runner.model().layouts);
    setup.lanes = how.lanes;
    setup.communicator = how.communicator;
    scorer.emplace(runner.model(), setup, TttData{how.tokens, 1, nullptr, how.without}, how.listener);
  }

  const TinyRun how;
  TttRunner runner;
  TttSetup setup;
  std::optional<Run> scorer;
};

template <typename Run = TttScorer>
TinyOutcome run_tiny(const TinyRun& how) {
  TinyScorer<Run> tiny(how);
  Run& run = *tiny.scorer;
  TinyOutcome outcome;
  if (!how.communicator) run.at_boundaries([&] { outcome.standings.push_back(run.standing()); }, {});
  outcome.report = run.run(how.from);
  outcome.losses = run.book().losses();
  return outcome;
}

}  // namespace mulligan
