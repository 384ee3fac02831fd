// The levels of run.determinism: taken only where the backend promises what they need; and what "batch" holds of a
// whole model. (Kernel by kernel: tests/kernels/row_invariance_test.cpp; "world": engine_ranks_test.cpp.)
#include <gtest/gtest.h>

#include "framework/run/run_plugins.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"

namespace mulligan::end_to_end::determinism_test {
namespace {

RunPlugins make(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), "run.determinism=run");
  LoadedConfig loaded = TinyRun::config_without_data(overrides);
  resolve_run_plugins(loaded, test_plugin_host());
  return make_run_plugins(loaded, test_plugin_host());
}

// The cuda backend's library of attention may add in any order: it is left out of such a run, unless the user
// asks for it all the same.
TEST(Determinism, IsPassedOnToTheBackend) {
  const Overrides cuda = {"backend.plugin=cuda", "backend.device=emulated"};
  EXPECT_TRUE(make({"backend.plugin=cpu"}).backend->repeats());
  EXPECT_TRUE(make(cuda).backend->repeats());
  EXPECT_FALSE(make(with(cuda, {"run.determinism=off"})).backend->repeats());
  EXPECT_TRUE(make(with(cuda, {"run.determinism=off", "backend.attention=own"})).backend->repeats());
  EXPECT_TRUE(make(with(cuda, {"run.determinism=off", "backend.deterministic=true"})).backend->repeats());
  EXPECT_THROW(make(with(cuda, {"backend.deterministic=false"})), Error);
}

TEST(Determinism, BatchIsPassedOnToTheBackend) {
  for (const std::vector<std::string>& backend :
       {std::vector<std::string>{"backend.plugin=cpu"}, {"backend.plugin=cuda", "backend.device=emulated"}}) {
    const auto promise = [&](const Overrides& more) { return make(with(backend, more)).backend->promises(); };
    EXPECT_EQ(promise({}), MLG_DETERMINISM_RUN);
    EXPECT_EQ(promise({"run.determinism=batch"}), MLG_DETERMINISM_BATCH);
    EXPECT_EQ(promise({"run.determinism=world"}), MLG_DETERMINISM_BATCH);
    // "world" is about ranks: the cost for rows can be switched off.
    EXPECT_EQ(promise({"run.determinism=world", "backend.batch_invariant=false"}), MLG_DETERMINISM_RUN);
  }
  // A backend that computes nothing has no rows: plans of such a configuration can be made.
  EXPECT_EQ(make({"run.determinism=batch", "backend.plugin=null"}).backend->promises(), MLG_DETERMINISM_RUN);
}

// A row of [[backend.kernels]] brings a library's kernel, about which nothing is known. The same promise refuses it (tests/triton).
TEST(Determinism, WhatCannotBeKeptIsRefused) {
  const Overrides minimal = {"backend.plugin=minimal_backend",
                             std::string("backend.path=") + MULLIGAN_MINIMAL_BACKEND};
  const auto refusal = [](const Overrides& overrides) {
    return sentence_of(ExitCode::bad_configuration, [&] { make(overrides); });
  };
  EXPECT_TRUE(contains(refusal(minimal), "run.determinism = \"run\"", "minimal_backend"));
  EXPECT_FALSE(make(with(minimal, {"run.determinism=off"})).backend->repeats());
  EXPECT_TRUE(contains(refusal(with(minimal, {"run.determinism=batch"})), "minimal_backend"));
  EXPECT_TRUE(contains(refusal({"run.determinism=batch", "backend.batch_invariant=false"}),
                       "run.determinism = \"batch\" cannot be kept", "backend.batch_invariant = true"));
}

// The score of a model, trained for two steps, with so many windows of 32 tokens side by side.
double scored(const char* level, int windows, const std::vector<std::string>& more = {}) {
  static TinyRun tiny(6);
  const Overrides overrides = {std::string("run.determinism=") + level,
                               "eval.packed_sequences=" + std::to_string(windows),
                               "train.steps=2",
                               "eval.mode=sliding",
                               "eval.sequence_length=32",
                               "eval.stride=32",
                               "model.mlp_hidden=2048"};
  return tiny.train(with(overrides, more)).validation->loss_sum_nats;
}

// 2,048 hidden units: the level "run" cuts a matmul with that inner dimension if it has few rows. So its result depends on
// the number of rows, and the test sees a difference where there is one.
TEST(Determinism, AScoreDoesNotDependOnWhatIsScoredWithIt) {
  const double alone = scored("batch", 1);
  for (const int windows : {3, 64}) EXPECT_EQ(scored("batch", windows), alone) << windows;
  EXPECT_EQ(scored("batch", 64, {"run.threads=3"}), alone);
  EXPECT_EQ(scored("batch", 3, {"train.compute_dtype=bf16"}),
            scored("batch", 64, {"train.compute_dtype=bf16"}));
  EXPECT_NE(scored("run", 1), scored("run", 64));
}

}  // namespace
}  // namespace mulligan::end_to_end::determinism_test
