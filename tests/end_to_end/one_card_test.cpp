// One card in the place of eight (docs/one_card.md): the gradient of every micro-batch is clipped by itself.
#include "tests/end_to_end/rank_engines.h"

namespace mulligan::end_to_end::one_card_test {
namespace {

const Overrides eight = {"train.micro_batches=8", "train.tokens_per_step=512", "train.sequence_length=64",
                         "train.clip_norm=0.01"};
const Overrides each = {"train.clip_order=each_micro_batch"};
const Overrides sliced = {"parameters.0.communication=sharded"};

// Steps, weights and losses; the norm that is reported is that of the last clip, on each rank another.
void expect_equal_training(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.state.size(), b.state.size());
  for (const auto& [name, bytes] : a.state) EXPECT_EQ(bytes, b.state.at(name)) << name;
  ASSERT_EQ(a.metrics.size(), b.metrics.size());
  for (std::size_t i = 0; i < a.metrics.size(); ++i)
    EXPECT_EQ(a.metrics[i].loss_sum_nats, b.metrics[i].loss_sum_nats) << i;
}

// What eight ranks do that clip what they have, one micro-batch each.
TEST(OneCard, EightRanksThatClipTheirOwnClipEachMicroBatch) {
  for (const Overrides& communication : {Overrides{}, sliced}) {
    const Overrides ranks = with(eight, communication);
    const Outcome own = train(8, with(ranks, {"train.clip_order=before_reduction"})),
                  of_each = train(8, with(ranks, each));
    expect_equal(own, of_each);
    const Outcome whole = train(8, with(ranks, {"train.clip_order=after_reduction"}));
    EXPECT_NE(own.state.at("master/qo_bank"), whole.state.at("master/qo_bank"));
  }
}

TEST(OneCard, MakesTheStepsOfEightRanksToTheBit) {
  const Overrides exact = with(with(eight, each), world_mode);
  const Outcome alone = train(1, exact, 4);
  for (const int size : {2, 8}) {
    SCOPED_TRACE(size);
    expect_equal_training(alone, train(size, exact, 4));
    expect_equal_training(alone, train(size, with(exact, sliced), 4));
  }
}

// Without a tree sums differ in their last bits alone.
TEST(OneCard, MakesTheStepsOfEightRanksWithoutATree) {
  const Overrides plain = with(eight, each);
  const Outcome alone = train(1, plain);
  for (const int size : {2, 8}) {
    SCOPED_TRACE(size);
    Outcome shared = train(size, plain);
    for (std::size_t i = 0; i < shared.metrics.size(); ++i)
      shared.metrics[i].gradient_norm = alone.metrics[i].gradient_norm;  // of another micro-batch
    expect_close(alone, shared, 1e-4);
  }
  // One rank that clips the sum of its eight does something else.
  EXPECT_NE(alone.state.at("master/qo_bank"),
            train(1, with(eight, {"train.clip_order=before_reduction"})).state.at("master/qo_bank"));
}

// A card that is too small for a micro-batch computes it in parts: each is clipped by itself as before, attention sees
// what it saw, and so does the smear gate, which looks at the token before. Sums differ in their last bits.
TEST(OneCard, PartsOfAMicroBatchMakeTheSameSteps) {
  const Overrides base = with(with(eight, each), {"train.sequence_length=16"});
  for (const Overrides& more :
       {Overrides{}, Overrides{"model.smear_gate.window=4", "model.smear_gate.document_start=-1"},
        Overrides{"loss.plugin=cross_entropy"}, Overrides{"data.documents=joined"},
        Overrides{"train.clip_order=after_reduction"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(more, " ")));
    const Overrides whole = with(base, more);
    const Outcome eight_ranks = train(8, whole, 4);
    for (const char* parts : {"train.micro_batch_parts=2", "train.micro_batch_parts=3"}) {
      SCOPED_TRACE(parts);
      Outcome alone = train(1, with(whole, {parts}), 4);
      for (std::size_t i = 0; i < alone.metrics.size(); ++i) {
        EXPECT_NEAR(alone.metrics[i].loss_sum_nats / eight_ranks.metrics[i].loss_sum_nats, 1,
                    i == 0 ? 1e-7 : 1e-5);
        alone.metrics[i].gradient_norm = eight_ranks.metrics[i].gradient_norm;  // of another micro-batch
      }
      expect_close(eight_ranks, alone, 1e-4);
      EXPECT_NE(alone.state.at("master/qo_bank"), eight_ranks.state.at("master/qo_bank"));
    }
  }
}

// Every rank computes a micro-batch in the same parts.
TEST(OneCard, PartsOfAMicroBatchDoNotDependOnTheRanks) {
  const Overrides exact =
      with(with(with(eight, each), world_mode), {"train.sequence_length=16", "train.micro_batch_parts=2"});
  const Outcome alone = train(1, exact, 4);
  for (const int size : {2, 8}) expect_equal_training(alone, train(size, exact, 4));
}

TEST(OneCard, AScaleOfTheLossNeedsTheWholeGradient) {
  ThreadWorld world(1);
  const std::string said =
      sentence_of([&] { Rank rank(with(with(eight, each), {"loss_scale.mode=static"}), world.rank(0)); });
  EXPECT_NE(said.find("nothing sees whether that is finite"), std::string::npos) << said;
}

}  // namespace
}  // namespace mulligan::end_to_end::one_card_test
