// Bits per byte are given only when both ways of counting bytes agree, and only for tokens that were scored.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "framework/data/shard.h"
#include "framework/eval/evaluate.h"
#include "framework/eval/evaluator.h"
#include "framework/model/initialise.h"
#include "framework/ranks/host_group.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"

namespace mulligan::eval_bytes_test {
namespace {

using end_to_end::tiny;

// An untrained tiny model that scores the prepared validation text.
class EvalBytes : public testing::Test {
 protected:
  EvalBytes()
      : loaded_(tiny().config({})),
        layouts_(parameter_layouts(loaded_.config.model, MLG_F32)),
        backend_(make_cpu_backend(1)),
        group_(make_single_group()),
        validation_(load_validation(loaded_.config.data, loaded_.config.model.vocabulary)) {}

  // With tensors of its own: shapes may be others than before. `spread`: of what is added to the initial values.
  Evaluator& evaluator(const EvalConfig& eval, float spread = 0) {
    EvaluatorOptions options;
    options.eval = eval;
    options.bos_id = validation_.bos_id;
    scoring_.reset();
    store_.emplace(*backend_);
    scoring_.emplace(*store_, loaded_.config.model, layouts_, options);
    for (const ParameterLayout& layout : layouts_) {
      std::vector<float> values = initial_values(layout.spec, 1);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] += spread * std::sin(0.7F * static_cast<float>(i));
      store_->upload(master_name(layout.spec.name), values);
    }
    return scoring_->evaluator;
  }
  // The sum of the losses. No weight is zero, so every loss depends on the tokens before it.
  double loss_alone(const EvalConfig& eval) {
    return evaluate(evaluator(eval, 0.1F), validation_, *group_).loss_sum_nats;
  }
  std::string refusal(const EvalConfig& eval, ExitCode code) {
    return refusal_of(code, [&] { evaluate(evaluator(eval), validation_, *group_); });
  }

  LoadedConfig loaded_;
  std::vector<ParameterLayout> layouts_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HostGroup> group_;
  ValidationSet validation_;
  std::optional<TensorStore> store_;
  std::optional<BoundEvaluator> scoring_;
};

TEST_F(EvalBytes, AllTokensAndTheBytesOfTheTextAreCounted) {
  const EvalResult result = evaluate(evaluator(loaded_.config.eval), validation_, *group_);
  EXPECT_EQ(result.tokens, validation_.tokens.size() - 1);
  EXPECT_EQ(result.bytes, std::filesystem::file_size(tiny().folder() / "data/validation.txt"));
  EXPECT_NEAR(result.val_loss_nats, std::log(end_to_end::tiny_vocabulary), 0.05);
  EXPECT_NEAR(result.val_bpb, result.loss_sum_nats / std::log(2.0) / static_cast<double>(result.bytes),
              1e-12);
}

TEST_F(EvalBytes, SequencesPerRowArePartOfTheScore) {
  EvalConfig eval = loaded_.config.eval;
  const double loss = loss_alone(eval);
  eval.packed_sequences = 1;
  EXPECT_NE(loss_alone(eval), loss);
}

TEST_F(EvalBytes, ADroppedRemainderLeavesOutTheBytesOfItsTokens) {
  EvalConfig eval = loaded_.config.eval;
  eval.drop_remainder = true;
  const EvalResult result = evaluate(evaluator(eval), validation_, *group_);
  const auto row = static_cast<std::uint64_t>(eval.sequence_length * eval.packed_sequences);
  EXPECT_EQ(result.tokens, (validation_.tokens.size() - 1) / row * row);
  EXPECT_EQ(result.bytes,
            validation_.counter()->count(std::span(validation_.tokens).first(result.tokens + 1)));
}

TEST_F(EvalBytes, AByteTableThatDisagreesWithTheTextGivesNoScore) {
  std::vector<std::int32_t> base(end_to_end::tiny_vocabulary, 1);
  std::vector<std::uint8_t> zeros(end_to_end::tiny_vocabulary, 0);
  validation_.tokenizer_counter = validation_.original_counter =
      std::make_shared<const ByteTable>(base, zeros, zeros);
  EXPECT_TRUE(contains(refusal(loaded_.config.eval, ExitCode::bad_data), "byte"));
}

TEST_F(EvalBytes, WithoutATokenizerThereIsALossButNoBitsPerByte) {
  validation_.tokenizer.reset();
  validation_.tokenizer_counter = validation_.original_counter = nullptr;
  validation_.counts_pieces = false;
  const EvalResult result = evaluate(evaluator(loaded_.config.eval), validation_, *group_);
  EXPECT_EQ(result.bytes, 0u);
  EXPECT_TRUE(std::isnan(result.val_bpb));
  EXPECT_GT(result.val_loss_nats, 0);
  EXPECT_TRUE(contains(score_text(result), "no bits per byte"));
}

TEST_F(EvalBytes, NothingToScoreIsAnError) {
  EvalConfig eval = loaded_.config.eval;
  eval.drop_remainder = true;
  validation_.tokens.resize(50);
  EXPECT_TRUE(contains(refusal(eval, ExitCode::bad_data), "drop_remainder"));
}

// What a tokenizer without byte fallback makes of foreign text, and a token outside of the vocabulary.
TEST_F(EvalBytes, TokensThatStandForNoTextAreRefused) {
  const auto refused = [&](const char* name, const std::vector<std::uint16_t>& tokens) {
    DataConfig data = loaded_.config.data;
    data.validation = (tiny().folder() / name).string();
    write_shard(data.validation, tokens);
    return sentence_of(ExitCode::bad_data, [&] { load_validation(data, loaded_.config.model.vocabulary); });
  };
  EXPECT_TRUE(contains(refused("unknown.bin", {1, 3, 3, 3, 3, 1, 3}), "unknown.bin", "no text"));
  EXPECT_TRUE(contains(refused("foreign.bin", {1, 5, 999, 6}), "999"));
}

}  // namespace
}  // namespace mulligan::eval_bytes_test
