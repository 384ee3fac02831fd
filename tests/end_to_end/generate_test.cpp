// Text from a trained model: the same forward pass as the evaluation's.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/eval/evaluate.h"
#include "framework/eval/evaluator.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_plugins.h"
#include "launch/commands/run_generate.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"

namespace mulligan::end_to_end::generate_test {
namespace {

const std::vector<std::string> overrides = {"train.steps=30"};

// One trained model for all tests.
class Generate : public testing::Test {
 protected:
  static const WeightLoader& load() {
    static const WeightLoader loader = weights_in(tiny().train(overrides).directory / "weights.safetensors");
    return loader;
  }

  GenerateRunOptions options() const {
    GenerateRunOptions options;
    options.console = nullptr;
    options.prompt = prompt_;
    options.generate.max_tokens = 24;
    return options;
  }
  GenerateResult run(const GenerateRunOptions& options) {
    LoadedConfig loaded = tiny().config(overrides);
    text_.clear();
    GenerateRunOptions listening = options;
    listening.on_text = [&](std::string_view part) { text_ += part; };
    return run_generate(loaded, test_plugin_host(), "weights", load(), listening);
  }

  const std::string prompt_ = synthetic_document(7).substr(0, 60);
  std::string text_;
};

// The chosen continuation, scored by the evaluator as one document, costs what generating said it costs; and
// with temperature 0 every token was the most probable one: any other in its place costs more.
TEST_F(Generate, AgreesWithTheEvaluation) {
  GenerateRunOptions greedy = options();
  greedy.generate.sampling.temperature = 0;
  const GenerateResult result = run(greedy);
  ASSERT_FALSE(result.tokens.empty());

  LoadedConfig loaded = tiny().config(overrides);
  resolve_run_plugins(loaded, test_plugin_host());
  const RunConfig& config = loaded.config;
  const RunPlugins plugins = make_run_plugins(loaded, test_plugin_host());
  LoadedModel model(*plugins.backend, config);
  model.load(load());
  const Tokenizer tokenizer = Tokenizer::load(config.data.tokenizer);
  EvaluatorOptions evaluating;
  evaluating.eval = config.eval;
  evaluating.layer_order = scored_order(config.model);
  evaluating.bos_id = tokenizer.bos_id();
  BoundEvaluator scoring(model.store(), config.model, model.layouts(), evaluating);

  std::vector<std::uint16_t> document = {static_cast<std::uint16_t>(tokenizer.bos_id())};
  for (const int id : tokenizer.encode(prompt_)) document.push_back(static_cast<std::uint16_t>(id));
  const std::size_t first = document.size();
  for (const int id : result.tokens) document.push_back(static_cast<std::uint16_t>(id));
  ASSERT_LE(document.size(), static_cast<std::size_t>(config.eval.sequence_length))
      << "the evaluator would cut the document";
  std::vector<double> losses;
  const auto score = [&](const std::vector<std::uint16_t>& tokens) {
    losses.clear();
    scoring.evaluator.score(tokens, nullptr, 1, 0,
                            [&](const EvalSpan&, std::span<const float> row, std::span<const float>) {
                              losses.assign(row.begin(), row.end());
                            });
  };
  score(document);
  double sum = 0;
  for (std::size_t i = first; i < document.size(); ++i) sum += losses[i - 1];
  EXPECT_NEAR(result.loss_nats, sum, 1e-4 * static_cast<double>(result.tokens.size()));

  const std::vector<double> chosen = losses;
  for (std::size_t i = first; i < document.size(); i += 7) {
    for (int other = 0; other < tiny_vocabulary; other += 11) {
      if (other == document[i]) continue;
      std::vector<std::uint16_t> changed = document;
      changed[i] = static_cast<std::uint16_t>(other);
      score(changed);
      EXPECT_GE(losses[i - 1], chosen[i - 1] - 1e-4) << "token " << other << " at " << i;
    }
  }
}

TEST_F(Generate, TheSameSeedGivesTheSameTextAndTopOneIsGreedy) {
  GenerateRunOptions sampled = options();
  sampled.generate.sampling.seed = 5;
  const GenerateResult first = run(sampled);
  const std::string text = text_;
  EXPECT_EQ(run(sampled).tokens, first.tokens);
  EXPECT_EQ(text_, text);
  sampled.generate.sampling.seed = 6;
  EXPECT_NE(run(sampled).tokens, first.tokens);

  sampled.generate.sampling.top_k = 1;
  const GenerateResult top = run(sampled);
  GenerateRunOptions greedy = options();
  greedy.generate.sampling.temperature = 0;
  EXPECT_EQ(run(greedy).tokens, top.tokens);
}

// Of a text longer than the window the last tokens count: what stood before them changes nothing.
TEST_F(Generate, GoesOnBeyondTheWindow) {
  GenerateRunOptions longer = options();
  longer.generate.sampling.temperature = 0;
  std::string tail;
  for (int i = 0; i < 6; ++i) tail += synthetic_document(7) + " ";
  longer.prompt = synthetic_document(8) + " " + tail;
  const GenerateResult one = run(longer);
  longer.prompt = synthetic_document(9) + " " + tail;
  EXPECT_EQ(run(longer).tokens, one.tokens);
  EXPECT_TRUE(std::isfinite(one.loss_nats));
}

TEST_F(Generate, AMissingTokenizerIsTold) {
  LoadedConfig loaded = tiny().config(with(overrides, {"data.tokenizer=''"}));
  EXPECT_TRUE(
      contains(refusal_of(ExitCode::bad_configuration,
                          [&] { run_generate(loaded, test_plugin_host(), "weights", load(), options()); }),
               "data.tokenizer is not set"));
}

}  // namespace
}  // namespace mulligan::end_to_end::generate_test
