// Compares plain and sliding evaluation with the public reference: the losses, counts and bytes of every rank (fixture folder
// eval/, weights of model/).
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <regex>

#include "framework/data/byte_count.h"
#include "framework/eval/evaluator.h"
#include "tests/golden/golden_fixture.h"
#include "tests/golden/golden_model.h"
#include "tests/support/plugins.h"

namespace mulligan::eval_golden_test {
namespace {

// Tolerances of the fixtures' README, section 11.
constexpr double token_loss_tolerance = 1e-4;
constexpr double val_loss_tolerance = 1e-5;

struct Case {
  std::string name;
  bool sliding = false;
  bool looping = false;
  int world_size = 1;
  int rank = 0;
};

std::vector<Case> cases_of(const nlohmann::json& results) {
  static const std::regex pattern("(eval_val|sliding)\\.loop([01])\\.ws(\\d+)\\.rank(\\d+)");
  std::vector<Case> cases;
  for (const auto& [name, result] : results.items()) {
    std::smatch match;
    if (!std::regex_match(name, match, pattern)) continue;
    cases.push_back({name, match[1] == "sliding", match[2] == "1", std::stoi(match[3]), std::stoi(match[4])});
  }
  return cases;
}

class EvalGolden : public testing::Test {
 protected:
  EvalGolden()
      : data_("eval"),
        params_("model", "params.safetensors"),
        model_(golden_model(GoldenFixture("model").manifest().at("config"))),
        layouts_(parameter_layouts(model_, MLG_F32)),
        backend_(make_test_backend(2)),
        bytes_(data_.ints("base_bytes"), data_.bytes("has_leading_space"), data_.bytes("is_boundary")) {
    for (const std::int32_t token : data_.ints("val_tokens"))
      tokens_.push_back(static_cast<std::uint16_t>(token));
  }

  // An evaluator with tensors of its own, ready to score.
  struct Scorer {
    Scorer(Backend& backend, const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
           const EvaluatorOptions& options)
        : store(backend), scoring(store, model, layouts, options) {}
    TensorStore store;
    BoundEvaluator scoring;
  };
  std::unique_ptr<Scorer> scorer(const EvaluatorOptions& options) {
    auto made = std::make_unique<Scorer>(*backend_, model_, layouts_, options);
    for (const ParameterLayout& layout : layouts_) {
      made->store.upload(master_name(layout.spec.name), params_.floats(layout.spec.name));
    }
    return made;
  }

  EvaluatorOptions options_of(const Case& test) const {
    const nlohmann::json& config = data_.manifest().at("results").at("config");
    EvaluatorOptions options;
    options.layer_order = test.looping ? LayerOrderKind::looped : LayerOrderKind::plain;
    options.eval.mode = test.sliding ? EvalMode::sliding : EvalMode::rows;
    options.eval.sequence_length = config.at("eval_seq_len");
    options.eval.stride = config.at("eval_stride");
    options.eval.packed_sequences = config.at(test.sliding ? "sliding_batch_seqs" : "local_batch_seqs");
    // The reference's local batch is val_batch_tokens / (world size * gradient accumulation). Here it is the same for every
    // world size.
    options.eval.drop_remainder = !test.sliding;
    return options;
  }

  void check(const Case& test) {
    SCOPED_TRACE(test.name);
    const auto made = scorer(options_of(test));
    std::vector<float> losses;
    const EvalSums sums = made->scoring.evaluator.score(
        tokens_, &bytes_, test.world_size, test.rank,
        [&](const EvalSpan&, std::span<const float> row, std::span<const float>) {
          losses.insert(losses.end(), row.begin(), row.end());
        });
    const std::vector<double> expected = data_.doubles(test.name + ".loss_sum_tokens_bytes");
    const std::vector<double> scores = data_.doubles(test.name + ".val_loss_val_bpb");
    const auto tokens = static_cast<double>(sums.tokens);
    EXPECT_EQ(tokens, expected[1]);
    EXPECT_EQ(static_cast<double>(sums.bytes), expected[2]);
    EXPECT_NEAR(sums.loss_nats / tokens, scores[0], val_loss_tolerance);
    EXPECT_NEAR(sums.loss_nats / std::numbers::ln2 / static_cast<double>(sums.bytes), scores[1],
                val_loss_tolerance);
    EXPECT_NEAR(sums.loss_nats, expected[0], val_loss_tolerance * expected[1]);
    if (!data_.has(test.name + ".token_loss")) return;
    const std::vector<double> theirs = data_.doubles(test.name + ".token_loss");
    ASSERT_EQ(losses.size(), theirs.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(losses[i]), theirs[i], token_loss_tolerance) << "position " << i;
    }
  }

  GoldenFixture data_, params_;
  ModelConfig model_;
  std::vector<ParameterLayout> layouts_;
  std::unique_ptr<Backend> backend_;
  ByteTable bytes_;
  std::vector<std::uint16_t> tokens_;
};

TEST_F(EvalGolden, EveryModeLayerOrderAndRankMatches) {
  const std::vector<Case> cases = cases_of(data_.manifest().at("results"));
  ASSERT_FALSE(cases.empty());
  for (const Case& test : cases) check(test);
}

// Without drop_remainder every target is scored once for any share. The reference drops tokens, so it has no such case.
TEST_F(EvalGolden, WithoutDroppingTheRanksScoreEveryTokenOnce) {
  Case test{"every token", false, true, 1, 0};
  EvaluatorOptions options = options_of(test);
  options.eval.drop_remainder = false;
  const auto made = scorer(options);
  const EvalSums whole = made->scoring.evaluator.score(tokens_, &bytes_);
  EXPECT_EQ(whole.tokens, tokens_.size() - 1);
  EXPECT_EQ(whole.bytes, bytes_.count(tokens_));
  EXPECT_EQ(whole.first_target, 1);
  EXPECT_EQ(whole.last_target, static_cast<std::int64_t>(tokens_.size()) - 1);
  for (const int world_size : {2, 3}) {
    EvalSums together;
    for (int rank = 0; rank < world_size; ++rank) {
      const EvalSums share = made->scoring.evaluator.score(tokens_, &bytes_, world_size, rank);
      together.loss_nats += share.loss_nats;
      together.tokens += share.tokens;
      together.bytes += share.bytes;
    }
    EXPECT_EQ(together.tokens, whole.tokens);
    EXPECT_EQ(together.bytes, whole.bytes);
    EXPECT_NEAR(together.loss_nats, whole.loss_nats, 1e-9 * whole.loss_nats);
  }
}

}  // namespace
}  // namespace mulligan::eval_golden_test
