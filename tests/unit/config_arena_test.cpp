// The keys of the optimiser benchmark: the family modded, stream order, joined documents, no tokenizer, sums of losses.
#include <gtest/gtest.h>

#include "framework/config/config_report.h"
#include "tests/unit/config_testing.h"

namespace mulligan::config_arena_test {
namespace {

RunConfig config_of(const std::vector<std::string>& sets) {
  return small_config(sets).config;
}
std::string refusal(const std::vector<std::string>& sets, const std::string& more = "") {
  return error_of([&] { small_config(sets, more); });
}

TEST(ConfigArena, TheFamilyHasAHeadOfItsOwnAndNoPartOfTheRecord) {
  const LoadedConfig loaded = small_config({"model.family=modded", "model.rational_softcap.cap=15"});
  const ModelConfig& model = loaded.config.model;
  EXPECT_TRUE(model.qk_norm);
  EXPECT_FALSE(model.tied_head || model.skip_weights || model.residual_mix || model.ln_scale);
  EXPECT_EQ(model.softcap, 0);
  EXPECT_EQ(model.q_gain, 0);
  EXPECT_TRUE(model.elements.contains("rational_softcap.cap"));
  for (const char* key :
       {"model.softcap=15", "model.tied_head=true", "model.qk_norm=false", "model.q_gain=1"})
    EXPECT_TRUE(contains(refusal({"model.family=modded", key}), "the family \"modded\" has no such part"))
        << key;
  const RunConfig again = parse_run_config(print_resolved(loaded), "config.toml").config;
  EXPECT_EQ(again.model.family, ModelFamily::modded);
  EXPECT_FALSE(again.model.tied_head);
}

TEST(ConfigArena, HalfTruncatedRotationNeedsQuarters) {
  EXPECT_EQ(config_of({"model.rope.form=half_truncated"}).model.rope.dims, 8);
  EXPECT_TRUE(contains(refusal({"model.rope.form=half_truncated", "model.rope.dims=6"}), "multiple of 4"));
  EXPECT_TRUE(contains(refusal({"model.rope.form=half_truncated", "model.rope.dims=4"}), "at least 8"));
}

TEST(ConfigArena, NoTokenizerIsAWord) {
  EXPECT_EQ(config_of({"data.tokenizer=none"}).data.tokenizer, "");
}

TEST(ConfigArena, AStreamHasOneSizeOfStepAndAnEnd) {
  EXPECT_EQ(config_of({"data.order=stream"}).data.order, DataOrder::stream);
  EXPECT_TRUE(
      contains(refusal({"data.order=stream", "train.steps=0", "train.budget_seconds=1"}), "train.steps"));
  EXPECT_TRUE(contains(refusal({"data.order=stream", "train.micro_batches=2"},
                               "[[phase]]\nuntil_steps = 5\nmicro_batches = 4\n[[phase]]\n"),
                       "steps of one size"));
  EXPECT_TRUE(
      contains(refusal({"data.order=stream", "data.train=''"}, "[[data.mix]]\nname = \"a\"\ntrain = \"t\"\n"),
               "several streams"));
}

TEST(ConfigArena, JoinedDocumentsFillWholeRows) {
  const RunConfig config = config_of({"data.documents=joined", "train.sequence_length=64"});
  EXPECT_EQ(rotary_positions(config), 64);
  EXPECT_EQ(rotary_positions(config_of({"train.sequence_length=64"})), 256);
  EXPECT_TRUE(contains(refusal({"data.documents=joined", "train.sequence_length=100"}), "no whole rows"));
  EXPECT_TRUE(contains(
      refusal({"data.documents=joined", "train.sequence_length=64"}, "[ttt]\n[ttt.optimizer]\nlr = 0.01\n"),
      "adapts to each document"));
}

TEST(ConfigArena, SumsAndSharesOfTheTextAreNotForEveryRun) {
  EXPECT_EQ(config_of({"train.loss_reduction=sum", "train.clip_norm=1"}).train.loss_reduction,
            LossReduction::sum);
  EXPECT_TRUE(contains(
      refusal({"train.loss_reduction=sum", "train.clip_norm=1", "train.clip_order=before_reduction"}),
      "clips the mean of each rank"));
  EXPECT_TRUE(
      contains(refusal({"eval.tokens=100", "ledger.rules=strict"}), "leaves validation tokens unscored"));
}

}  // namespace
}  // namespace mulligan::config_arena_test
