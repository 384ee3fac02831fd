// Training steps of several ranks, each an engine in a thread of its own, against the same steps of one.
#include "tests/end_to_end/rank_engines.h"
#include "tests/support/sentence.h"

namespace mulligan::end_to_end::engine_ranks_test {
namespace {

TEST(EngineRanks, AWorldGivesTheSameBitsForAnyNumberOfRanks) {
  for (const Overrides& communication : {Overrides{}, cut, owned}) {
    const Overrides overrides = with(with(base, world_mode), communication);
    const Outcome alone = train(1, overrides);
    for (const int size : {2, 4}) {
      SCOPED_TRACE(size);
      expect_equal(alone, train(size, overrides));
    }
  }
}

TEST(EngineRanks, NoiseIsTheSameForAnyNumberOfRanks) {
  const Overrides exact = with(base, world_mode);
  const Outcome quiet = train(1, exact);
  for (const char* mode : {"relative", "norm", "anneal", "bf16_round", "bf16_stochastic"}) {
    for (const char* order : {"before_clip", "after_clip"}) {
      SCOPED_TRACE(std::string(mode) + " " + order);
      const Overrides noisy = with(with(exact, cut), {"noise.sigma=0.01", std::string("noise.mode=") + mode,
                                                      std::string("noise.order=") + order});
      const Outcome alone = train(1, noisy);
      expect_equal(alone, train(2, noisy));
      EXPECT_NE(alone.state.at("master/qo_bank"), quiet.state.at("master/qo_bank"));
    }
  }
  // Of no strength it is the run without, bit for bit.
  expect_equal(quiet, train(1, with(exact, {"noise.mode=relative", "noise.sigma=0.0"})));
}

// Ranks that have slices of gradients, or whole ones of some, draw for their own elements and know the norms of the
// whole. (To the nearest bf16 a gradient that differs in its last bit is rounded elsewhere, so rounding is compared
// above, in a tree.)
TEST(EngineRanks, NoiseInSlicesIsThatOfTheWhole) {
  const Overrides three = {"train.micro_batches=6", "train.tokens_per_step=384", "train.sequence_length=64"};
  const Outcome quiet = train(1, three);
  for (const char* mode : {"relative", "norm", "anneal"}) {
    for (const char* order : {"before_clip", "after_clip"}) {
      SCOPED_TRACE(std::string(mode) + " " + order);
      const Overrides noisy = with(three, {"noise.sigma=0.05", std::string("noise.mode=") + mode,
                                           std::string("noise.order=") + order});
      const Outcome alone = train(1, noisy);
      EXPECT_NE(alone.state.at("master/qo_bank"), quiet.state.at("master/qo_bank"));
      // Over three ranks the last slice is padded.
      for (const auto& [size, communication] : {std::pair(2, cut), std::pair(3, cut), std::pair(2, owned)}) {
        SCOPED_TRACE(communication.front() + fmt::format(" {}", size));
        const Outcome shared = train(size, with(noisy, communication));
        expect_close(alone, shared, 1e-4);
        EXPECT_NEAR(shared.noise_ratio, alone.noise_ratio, 1e-4 * alone.noise_ratio);
      }
    }
  }
}

TEST(EngineRanks, RanksTogetherMakeTheStepOfOne) {
  const Outcome alone = train(1, base);
  for (const int size : {2, 4}) {
    SCOPED_TRACE(size);
    expect_close(alone, train(size, base), 1e-4);
    expect_close(alone, train(size, with(base, cut)), 1e-4);
    expect_close(alone, train(size, with(base, owned)), 1e-4);
  }
  // One rank of three owns two of the four banks, which have 8, 8, 4 and 4 entries: the last slice has padding.
  const Overrides three = {"train.micro_batches=3", "train.tokens_per_step=192", "train.sequence_length=64"};
  const Outcome one = train(1, three);
  expect_close(one, train(3, with(three, owned)), 1e-4);
  expect_close(one, train(3, with(three, cut)), 1e-4);
}

// A gradient that one rank alone has whole counts in the norm that all clip by.
TEST(EngineRanks, TheClipKnowsGradientsThatOneRankHas) {
  const Overrides clipped =
      with(base, {"train.clip_norm=0.01", "optimizer.matrices.plugin=sgd", "optimizer.matrices.lr=1",
                  "optimizer.rest.plugin=sgd", "optimizer.rest.lr=1"});
  const Outcome alone = train(1, clipped);
  expect_close(alone, train(2, with(clipped, owned)), 1e-4);
  expect_close(
      alone, train(2, with(clipped, {"parameters.0.communication=owner", "run.fused_kernels=false"})), 1e-4);
}

// Tells before each batch that is submitted.
class WatchedCommunicator final : public Communicator {
 public:
  explicit WatchedCommunicator(Communicator& inner) : inner_(inner) {}
  HostGroup& group() override { return inner_.group(); }
  std::unique_ptr<TransferBatch> prepare(TensorStore& store, std::vector<Transfer> transfers) override {
    return std::make_unique<Batch>(*this, inner_.prepare(store, std::move(transfers)));
  }
  std::function<void()> tell = [] {};

 private:
  struct Batch final : TransferBatch {
    Batch(WatchedCommunicator& watched, std::unique_ptr<TransferBatch> batch)
        : watched(watched), batch(std::move(batch)) {}
    void submit() override {
      watched.tell();
      batch->submit();
    }
    void join() override { batch->join(); }
    WatchedCommunicator& watched;
    std::unique_ptr<TransferBatch> batch;
  };
  Communicator& inner_;
};

// The first matrix of a bank is the first layer's, whose gradient the backward pass makes last.
TEST(EngineRanks, GradientsAreSentWhileTheBackwardPassGoesOn) {
  const Overrides two = {"train.micro_batches=2", "train.tokens_per_step=128", "train.sequence_length=64"};
  const auto sent_before = [&](const Overrides& overrides) {
    ThreadWorld world(2);
    std::vector<std::unique_ptr<WatchedCommunicator>> watched;
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      watched.push_back(std::make_unique<WatchedCommunicator>(world.rank(rank)));
      ranks.push_back(std::make_unique<Rank>(overrides, *watched.back()));
    }
    int sent = 0;  // batches of rank 0 before its first layer had a gradient
    world.run([&](int number, Communicator&) {
      Rank& rank = *ranks[static_cast<std::size_t>(number)];
      const TensorStore& store = rank.engine.store();
      const std::string bank = gradient_name("mlp_down_bank");
      rank.engine.initialise(3);
      const auto is_empty = [&] {
        const std::vector<float> gradient = store.download_as<float>(bank);
        const auto matrix = static_cast<std::ptrdiff_t>(gradient.size()) / store.type(bank).dims[0];
        return std::all_of(gradient.begin(), gradient.begin() + matrix, [](float g) { return g == 0; });
      };
      if (number == 0) watched[0]->tell = [&] { sent += is_empty() ? 1 : 0; };
      rank.steps(1, 1);
      EXPECT_FALSE(is_empty());
    });
    return sent;
  };
  for (const Overrides& communication : {Overrides{}, cut, owned}) {
    EXPECT_GT(sent_before(with(two, communication)), 1);
    // What each rank clips by itself is complete when the pass is.
    EXPECT_EQ(sent_before(with(with(two, communication), {"train.clip_order=before_reduction"})), 0);
  }
}

TEST(EngineRanks, GradientsMayTravelInBf16) {
  // Plain steps along the gradient, unclipped: what differs is the gradient.
  const Overrides plain = with(base, {"train.clip_norm=0.0", "optimizer.matrices.plugin=sgd",
                                      "optimizer.matrices.lr=1", "parameters.0.communication=sharded"});
  const Outcome start = train(1, plain, 0), exact = train(2, plain, 1);
  const Outcome rounded = train(2, with(plain, {"parameters.0.communication_dtype=bf16"}), 1);
  for (const char* name : {"master/qo_bank", "master/mlp_down_bank"}) {
    const auto before = floats_of(start, name), a = floats_of(exact, name), b = floats_of(rounded, name);
    float largest = 0, difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(a[i] - before[i]));
      difference = std::max(difference, std::abs(a[i] - b[i]));
    }
    EXPECT_GT(difference, 0) << name;
    EXPECT_LE(difference, largest / 128) << name;  // of two rounded parts and their rounded sum
  }
}

// Clipped before the reduction, each rank's gradient is held against the limit by itself.
TEST(EngineRanks, EachRankMayClipWhatItHas) {
  const Overrides clipped = {"train.clip_norm=0.01",          "train.clip_order=before_reduction",
                             "optimizer.matrices.plugin=sgd", "optimizer.rest.plugin=sgd",
                             "optimizer.matrices.lr=1",       "optimizer.rest.lr=1"};
  const Overrides two = with(with(base, {"train.micro_batches=2", "train.tokens_per_step=128"}), clipped);
  const Overrides one = with(with(base, {"train.micro_batches=1", "train.tokens_per_step=64"}), clipped);
  const Outcome together = train(2, two, 1);
  EXPECT_NE(together.state.at("master/qo_bank"),
            train(2, with(two, {"train.clip_norm=0.0"}), 1).state.at("master/qo_bank"));
  // Two runs of one rank, on the first and on the second row: the mean of what they do.
  std::map<std::string, std::vector<double>> changes;
  for (const int skipped : {0, 1}) {
    ThreadWorld world(1);
    Rank rank(one, world.rank(0));
    rank.engine.initialise(3);
    std::map<std::string, std::vector<float>> before;
    for (const PlannedParameter& parameter : rank.parameters) {
      before[parameter.name()] = rank.engine.store().download_as<float>(master_name(parameter.name()));
    }
    for (int i = 0; i < skipped; ++i) rank.rows->next();
    rank.steps(1, 1);
    for (const PlannedParameter& parameter : rank.parameters) {
      const auto after = rank.engine.store().download_as<float>(master_name(parameter.name()));
      auto& change = changes[parameter.name()];
      change.resize(after.size());
      for (std::size_t i = 0; i < after.size(); ++i)
        change[i] += (after[i] - before[parameter.name()][i]) / 2.0;
      if (skipped == 0) continue;
      const std::vector<float> seen = floats_of(together, master_name(parameter.name()));
      for (std::size_t i = 0; i < seen.size(); ++i) {
        ASSERT_NEAR(seen[i] - before[parameter.name()][i], change[i], 1e-6) << parameter.name() << " " << i;
      }
    }
  }
}

// What three ranks leave, four ranks take up: the same as if nothing had changed.
TEST(EngineRanks, StateGoesFromAnyNumberOfRanksToAnyOther) {
  const Outcome straight = train(1, with(with(base, world_mode), cut), 4);
  for (const auto& [from, to, communication] :
       {std::tuple(1, 4, cut), std::tuple(4, 2, cut), std::tuple(2, 1, cut), std::tuple(1, 4, owned),
        std::tuple(4, 2, owned), std::tuple(2, 1, owned)}) {
    SCOPED_TRACE(fmt::format("{} to {}, {}", from, to, communication.front()));
    const Overrides overrides = with(with(base, world_mode), communication);
    Outcome saved;
    LoaderPosition position;
    Ranks(from, overrides).run([&](int number, Rank& rank) {
      rank.steps(1, 2);
      Outcome mine = outcome_of(rank.engine, number == 0, 0, 2);
      if (number != 0) return;
      saved = std::move(mine);
      position = rank.rows->position();
    });
    Outcome resumed;
    Ranks(to, overrides).run([&](int number, Rank& rank) {
      rank.engine.initialise(99);
      const std::vector<StateTensor> state = rank.engine.whole_state();
      for (const StateTensor& tensor : state) {
        if (number == 0) tensor.write(rank.engine.store(), saved.state.at(tensor.name));
      }
      rank.engine.share_state(state);
      rank.engine.refresh_copies();
      rank.rows->restore(position);
      rank.steps(3, 4);
      Outcome mine = outcome_of(rank.engine, number == 0, 2, 4);
      if (number == 0) resumed = std::move(mine);
    });
    EXPECT_EQ(resumed.state, straight.state);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(resumed.metrics[i].loss_sum_nats, straight.metrics[i + 2].loss_sum_nats);
    }
  }
}

// An optimiser with one state for all parameters of a call, and with weights of its own that are scored.
const Overrides schedule_free = {"optimizer.matrices.plugin=schedule_free_adamw",
                                 "optimizer.matrices.lr=0.01", "ema.decay=0"};

TEST(EngineRanks, EvaluationWeightsOfSlicesAreThoseOfTheWhole) {
  const Overrides overrides = with(with(with(base, world_mode), cut), schedule_free);
  const Outcome alone = train(1, overrides);
  EXPECT_TRUE(alone.state.contains("evaluation/qo_bank"));
  EXPECT_NE(alone.state.at("evaluation/qo_bank"), alone.state.at("master/qo_bank"));
  for (const int size : {2, 4}) {
    SCOPED_TRACE(size);
    expect_equal(alone, train(size, overrides));
  }
  // What is not cut on one rank is what it was: one call for all.
  const Outcome together = train(1, with(with(base, world_mode), schedule_free));
  EXPECT_LT(together.state.size(), alone.state.size());
  EXPECT_EQ(together.state.at("master/qo_bank"), alone.state.at("master/qo_bank"));
}

// A wrapper moves whole weights on, which every rank has; averages of weights at rest are whole, too.
TEST(EngineRanks, WeightsAheadAtRestAndTheirAverageAreTheSameOnAnyNumber) {
  const Overrides around =
      with(with(base, world_mode), {"wrapper.plugin=ema_nesterov", "wrapper.from_step=1", "wrapper.decay=0.5",
                                    "ema.decay=0.67", "ema.from_step=2", "ema.blend=0.6",
                                    "ema.exclude=[\"tok_emb.weight\"]", "parameters.1.master_dtype=bf16"});
  for (const Overrides& communication : {Overrides{}, cut, owned}) {
    const Outcome alone = train(1, with(around, communication), 4);
    EXPECT_NE(alone.state.at("rest/qo_bank"), alone.state.at("master/qo_bank"));
    EXPECT_NE(alone.state.at("evaluation/qo_bank"), alone.state.at("rest/qo_bank"));
    EXPECT_FALSE(alone.state.contains("ema/tok_emb.weight"));
    for (const int size : {2, 4}) {
      SCOPED_TRACE(size);
      expect_equal(alone, train(size, with(around, communication), 4));
    }
  }
}

TEST(EngineRanks, OptimisersOfMatricesAreTheSameOnAnyNumber) {
  for (const Overrides& optimizer :
       {Overrides{"optimizer.matrices.lr=0.02", "optimizer.matrices.plugin=muon_h"},
        Overrides{"optimizer.matrices.lr=0.02", "optimizer.matrices.plugin=normuon"},
        of_single_matrices("muon_h"), of_single_matrices("soap_muon"),
        with(of_single_matrices("soap_muon"), {"optimizer.matrices.trust=true"})}) {
    SCOPED_TRACE(optimizer.back());
    const Overrides overrides = with(with(base, world_mode), optimizer);
    const Outcome alone = train(1, overrides);
    expect_equal(alone, train(2, overrides));
    expect_equal(alone, train(2, with(overrides, owned)));  // also what cannot be cut
    if (optimizer.size() > 2) continue;
    expect_equal(alone, train(2, with(overrides, cut)));  // between the matrices of banks
  }
}

// Rows of a matrix are no matrix.
TEST(EngineRanks, ASingleMatrixIsNotCutForThem) {
  for (const char* optimizer : {"muon", "muon_h", "normuon", "soap_muon"}) {
    const Overrides overrides = with(with(base, of_single_matrices(optimizer)), cut);
    train(1, overrides, 1);
    ThreadWorld world(2);
    const std::string said = sentence_of([&] { Rank rank(overrides, world.rank(0)); });
    EXPECT_TRUE(contains(said, "set communication = \"owner\""));
  }
}

TEST(EngineRanks, OneRankDoesNotOwnWeightsThatAreScored) {
  ThreadWorld world(2);
  const std::string said =
      sentence_of([&] { Rank rank(with(with(base, owned), schedule_free), world.rank(0)); });
  EXPECT_TRUE(contains(said, "has evaluation weights", "set communication = \"replicated\""));
}

// Bytes that a rank holds of tensors whose names begin with one of `prefixes`.
std::int64_t held_bytes(const TensorStore& store, const std::vector<std::string>& prefixes) {
  std::int64_t bytes = 0;
  for (const std::string& name : store.names()) {
    for (const std::string& prefix : prefixes)
      bytes += name.starts_with(prefix) ? store.reserved_bytes(name) : 0;
  }
  return bytes;
}

// The memory of a rank after a step, a save, a scoring and a probe. It holds its share of states and averages of cut banks, at
// most the whole of gradients and masters, and at most a buffer of anything else.
TEST(EngineRanks, ARankHoldsItsShareOfTheState) {
  const Overrides muon = with(base, {"ema.decay=0.9"});
  std::int64_t banks = 0, of_all[3] = {};  // states and averages; masters and gradients; all
  for (const bool sharded : {false, true}) {
    for (const int size : {1, 2, 4}) {
      SCOPED_TRACE(fmt::format("{} ranks, {}", size, sharded ? "sharded" : "replicated"));
      Ranks ranks(size, sharded ? with(muon, cut) : muon);
      ranks.run([&](int, Rank& rank) {
        rank.steps(1, 1);
        rank.engine.gather_state();
        rank.engine.gather_averages();
      });
      const TensorStore& store = ranks.all.back()->engine.store();
      const std::int64_t state = held_bytes(store, {"optimizer/matrices/", "ema"});
      const std::int64_t weights = held_bytes(store, {"master/", "gradient/", "slice"});
      std::int64_t cut_bytes = 0;  // all entries of the banks are divided evenly among 1, 2 and 4
      for (const PlannedParameter& parameter : ranks.all[0]->parameters) {
        if (parameter.layout.spec.name.ends_with("_bank")) cut_bytes += parameter.layout.spec.type.bytes();
      }
      if (banks == 0) {
        banks = cut_bytes;
        of_all[0] = state, of_all[1] = weights, of_all[2] = store.total_bytes();
      }
      // A momentum buffer and an average, each as large as the banks.
      const std::int64_t shared = sharded ? 2 * banks - 2 * banks / size : 0;
      EXPECT_EQ(state, of_all[0] - shared);
      EXPECT_EQ(weights, of_all[1]);
      const std::int64_t buffer = held_bytes(store, {"state_exchange/"});
      EXPECT_LE(buffer, sharded && size > 1 ? (size + 1) * banks / size : 0);
      EXPECT_LE(store.total_bytes(), of_all[2] - shared + buffer + 4096);
    }
  }
}

// States of a parameter that one rank owns are on that rank alone.
TEST(EngineRanks, OnlyOwnersHoldStates) {
  const auto held = [](int size) {
    const Ranks ranks(size, with(base, owned));
    std::vector<std::int64_t> bytes;
    for (const auto& rank : ranks.all)
      bytes.push_back(held_bytes(rank->engine.store(), {"optimizer/matrices/"}));
    return bytes;
  };
  const std::int64_t all = held(1).front();
  for (const int size : {2, 4}) {
    const std::vector<std::int64_t> each = held(size);
    EXPECT_EQ(std::accumulate(each.begin(), each.end(), std::int64_t{0}), all);
    EXPECT_LT(std::ranges::max(each), all);
    EXPECT_GT(std::ranges::min(each), 0);
  }
}

// Averages of slices, whole for a score, stay so while a row is probed.
TEST(EngineRanks, AveragesOfSlicesAreGatheredForScores) {
  const Overrides averaged = with(with(with(base, world_mode), cut), {"ema.decay=0.9"});
  const auto average = [&](int size, bool probed) {
    std::vector<std::vector<float>> seen(static_cast<std::size_t>(size));
    Ranks(size, averaged).run([&](int number, Rank& rank) {
      rank.steps(1, 2);
      rank.engine.gather_averages();
      if (probed) rank.engine.probe_loss(rank.rows->next());
      seen[static_cast<std::size_t>(number)] =
          rank.engine.store().download_as<float>(average_name("qo_bank"));
    });
    for (const auto& one : seen) EXPECT_EQ(one, seen.front());
    return seen.front();
  };
  const std::vector<float> alone = average(1, false);
  EXPECT_EQ(average(2, false), alone);
  EXPECT_EQ(average(4, true), alone);
}

TEST(EngineRanks, WorldsThatMakeNoTreeAreRefused) {
  const auto refusal = [](int size, const Overrides& overrides) {
    ThreadWorld world(size);
    return sentence_of([&] { Rank rank(with(with(base, world_mode), overrides), world.rank(0)); });
  };
  EXPECT_TRUE(contains(refusal(1, {"train.micro_batches=3", "train.tokens_per_step=192"}), "powers of two"));
  EXPECT_TRUE(contains(refusal(2, {"train.clip_order=before_reduction"}), "clip_order"));
  EXPECT_TRUE(contains(refusal(2, {"train.compute_dtype=bf16"}), "fp32"));
  EXPECT_TRUE(contains(refusal(2, {"parameters.0.communication_dtype=bf16"}), "communication_dtype"));
  EXPECT_TRUE(contains(refusal(3, {"train.micro_batches=3", "train.tokens_per_step=192"}), "3 ranks"));
}

}  // namespace
}  // namespace mulligan::end_to_end::engine_ranks_test
