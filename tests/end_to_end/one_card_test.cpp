// One card in the place of eight (docs/one_card.md): the gradient of every micro-batch is clipped by itself.
#include "tests/end_to_end/rank_engines.h"

namespace mulligan::end_to_end::one_card_test {
namespace {

const Overrides eight = {"train.micro_batches=8", "train.tokens_per_step=512", "train.sequence_length=64",
                         "train.clip_norm=0.01"};
const Overrides each = {"train.clip_order=each_micro_batch"};
const Overrides sliced = {"parameters.0.communication=sharded"};

// The norm that is reported is that of the last clip, on each rank another.
Outcome with_norms_of(const Outcome& other, Outcome outcome) {
  for (std::size_t i = 0; i < outcome.metrics.size(); ++i)
    outcome.metrics[i].gradient_norm = other.metrics.at(i).gradient_norm;
  return outcome;
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
    expect_equal(alone, with_norms_of(alone, train(size, exact, 4)));
    expect_equal(alone, with_norms_of(alone, train(size, with(exact, sliced), 4)));
  }
}

// Without a tree sums differ in their last bits alone.
TEST(OneCard, MakesTheStepsOfEightRanksWithoutATree) {
  const Overrides plain = with(eight, each);
  const Outcome alone = train(1, plain);
  for (const int size : {2, 8}) {
    SCOPED_TRACE(size);
    expect_close(alone, with_norms_of(alone, train(size, plain)), 1e-4);
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
      const Outcome alone = with_norms_of(eight_ranks, train(1, with(whole, {parts}), 4));
      for (std::size_t i = 0; i < alone.metrics.size(); ++i) {
        EXPECT_NEAR(alone.metrics[i].loss_sum_nats / eight_ranks.metrics[i].loss_sum_nats, 1,
                    i == 0 ? 1e-7 : 1e-5);
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
  for (const int size : {2, 8}) expect_equal(alone, with_norms_of(alone, train(size, exact, 4)));
}

TEST(OneCard, AScaleOfTheLossNeedsTheWholeGradient) {
  ThreadWorld world(1);
  const std::string said =
      sentence_of([&] { Rank rank(with(with(eight, each), {"loss_scale.mode=static"}), world.rank(0)); });
  EXPECT_NE(said.find("nothing sees whether that is finite"), std::string::npos) << said;
}

}  // namespace
}  // namespace mulligan::end_to_end::one_card_test
