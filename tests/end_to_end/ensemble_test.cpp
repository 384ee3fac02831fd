// Ensembles of a trained model: scored against the model itself and against a naive average, on both backends.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/run/run_plugins.h"
#include "framework/run/weights.h"
#include "lab/ensemble/score_ensemble.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"
#include "tests/support/test_device.h"

namespace mulligan::end_to_end::ensemble_test {
namespace {

using ensemble::EnsembleScore;

class EnsembleRun : public testing::Test {
 protected:
  static TinyRun& tiny() {
    static TinyRun run(12);
    return run;
  }
  static const RunResult& trained() {
    static const RunResult result = tiny().train({"train.steps=40", "train.tokens_per_step=512"});
    return result;
  }
  static std::filesystem::path weights() { return trained().directory / "weights.safetensors"; }
  static EnsembleScore score(const Overrides& overrides, std::int64_t tokens = 1 << 20) {
    LoadedConfig loaded = tiny().config(with({"ensemble.members=4"}, overrides));
    ensemble::ScoreOptions options;
    options.console = nullptr;
    options.tokens = tokens;
    return score_ensemble(loaded, test_plugin_host(), origin_of_weights(weights()), weights_in(weights()),
                          options);
  }
  static std::string refusal(const std::vector<std::string>& overrides) {
    return refusal_of(ExitCode::bad_configuration, [&] { score(overrides); });
  }
};

TEST_F(EnsembleRun, ScoresTheModelItsReferenceAndItsMembers) {
  const EnsembleScore found = score({"ensemble.bits=4"});
  ASSERT_TRUE(trained().validation.has_value());
  // The centre is the model: the loss that training gave it, whose kernel sums in f32.
  EXPECT_EQ(found.tokens, trained().validation->tokens);
  EXPECT_EQ(found.bytes, trained().validation->bytes);
  EXPECT_NEAR(found.centre.loss_nats, trained().validation->val_loss_nats, 1e-5);
  EXPECT_NEAR(found.bpb(found.centre.loss_nats), trained().validation->val_bpb, 1e-5);
  // Jensen's inequality, and that rounding to 4 bits costs something and members differ.
  EXPECT_LE(found.ensemble.loss_nats, found.mean_loss_nats);
  EXPECT_GT(found.ambiguity_nats, 1e-6);
  EXPECT_NEAR(found.ambiguity_nats, found.mean_loss_nats - found.ensemble.loss_nats, 1e-9);
  EXPECT_GT(found.mean_loss_nats, found.centre.loss_nats);
  ASSERT_EQ(found.member_loss_nats.size(), 4U);
  double mean = 0;
  for (const double loss : found.member_loss_nats) mean += loss / 4;
  EXPECT_NEAR(mean, found.mean_loss_nats, 1e-9);
  EXPECT_NE(found.member_loss_nats[0], found.member_loss_nats[1]);
  EXPECT_GT(found.disagreement, 0);
  EXPECT_EQ(found.ensemble.count, found.tokens);
  // Half a byte a weight, and a scale of 4 bytes a row.
  const double codes = static_cast<double>(found.stored.changed_weights) / 2;
  EXPECT_GT(static_cast<double>(found.stored.member), codes);
  EXPECT_LT(static_cast<double>(found.stored.member), 1.5 * codes);
  EXPECT_EQ(found.stored.all(4), found.stored.kept + 4 * found.stored.member);

  const auto json = nlohmann::json::parse(ensemble::ensemble_json(found, "weights.safetensors"));
  EXPECT_EQ(json.at("score"), "ensemble");
  EXPECT_FALSE(json.contains("val_bpb") || json.contains("val_loss_nats"));
}

// At 16 bits members are all but the model.
TEST_F(EnsembleRun, FineGridsGiveTheModelBack) {
  const EnsembleScore found = score({"ensemble.bits=16", "ensemble.members=2"}, 600);
  EXPECT_EQ(found.tokens, 600U);
  EXPECT_NEAR(found.ensemble.loss_nats, found.centre.loss_nats, 1e-4);
  EXPECT_NEAR(found.reference.loss_nats, found.centre.loss_nats, 1e-4);
}

// Neither the size of a stretch nor the number of threads is part of a score; the seed is.
TEST_F(EnsembleRun, DependsOnSeedAndNotOnHowItIsMade) {
  const EnsembleScore once = score({});
  ASSERT_GT(once.tokens, 800U);  // more than a stretch of one mebibyte, which holds 787 of 320 + 3 numbers
  for (const std::string other : {"ensemble.chunk_mebibytes=1", "run.threads=3"}) {
    const EnsembleScore again = score({other});
    EXPECT_EQ(again.ensemble.loss_nats, once.ensemble.loss_nats) << other;
    EXPECT_EQ(again.member_loss_nats, once.member_loss_nats) << other;
    EXPECT_EQ(again.disagreement, once.disagreement) << other;
    EXPECT_EQ(again.bytes, once.bytes) << other;
  }
  EXPECT_NE(score({"ensemble.seed=1"}).member_loss_nats, once.member_loss_nats);
  EXPECT_EQ(score({"eval.mode=sliding", "eval.stride=32"}, 300).tokens, 300U);
}

// Every weight has the same bits on the cpu and the cuda backend: members, reference, the final centre.
TEST_F(EnsembleRun, MembersHaveTheSameBitsOnBothBackends) {
  using Weights = std::map<std::string, std::vector<float>>;
  const auto made = [&](const std::vector<std::string>& overrides, std::int64_t member) {
    LoadedConfig loaded = tiny().config(overrides);
    resolve_run_plugins(loaded, test_plugin_host(), PluginUse::score);
    const RunPlugins plugins = make_backend_plugin(loaded, test_plugin_host());
    const auto plugin = make_plugin<Ensemble>(MLG_ENSEMBLE, "stochastic_rounding");
    LoadedModel model(*plugins.backend, loaded.config);
    model.load(weights_in(weights()));
    ensemble::Members members(model, loaded.config.model, *plugin, 3, 2);
    Weights before, found;
    const auto read = [&](Weights& into) {
      for (const ParameterLayout& layout : model.layouts())
        into[layout.spec.name] = model.store().download_as<float>(master_name(layout.spec.name));
    };
    read(before);
    members.make(member);
    read(found);
    std::size_t changed = 0;
    for (const ParameterLayout& layout : model.layouts()) {
      const std::string& name = layout.spec.name;
      EXPECT_EQ(before[name] != found[name], ensemble::changes(layout.spec, loaded.config.model)) << name;
      if (before[name] != found[name]) ++changed;
    }
    EXPECT_GT(changed, 1U);
    EXPECT_EQ(before["tok_emb.weight"], found["tok_emb.weight"]);
    members.make_centre();
    Weights after;
    read(after);
    EXPECT_EQ(before, after);
    return found;
  };
  const std::vector<std::string> cuda = {"backend.plugin=cuda", "backend.device=" + test_device()};
  for (const std::int64_t member : {std::int64_t{MLG_ENSEMBLE_REFERENCE}, std::int64_t{2}})
    EXPECT_EQ(made({}, member), made(cuda, member)) << "member " << member;
}

TEST_F(EnsembleRun, AStrictLedgerCountsTheMembersBytes) {
  const std::vector<std::string> strict = {"ledger.rules=strict", "ledger.artifact_bytes=1000"};
  EXPECT_TRUE(contains(refusal(strict), "ensemble.count_members=true"));
  Overrides counted = with(strict, {"ensemble.count_members=true"});
  EXPECT_TRUE(contains(refusal(counted), "more than ledger.artifact_bytes = 1,000"));
  counted[1] = "ledger.artifact_bytes=16000000";
  EXPECT_EQ(refusal(counted), "");
}

TEST_F(EnsembleRun, BadInputIsRefused) {
  EXPECT_TRUE(contains(refusal({"ensemble.members=0"}), "ensemble.members"));
  EXPECT_TRUE(contains(refusal({"ensemble.bits=1"}), "ensemble.bits"));
  EXPECT_TRUE(contains(refusal({"ensemble.scale=row"}), "scales"));
  EXPECT_TRUE(contains(refusal({"ensemble.plugin=nothing"}), "nothing"));
  EXPECT_TRUE(contains(refusal({"backend.plugin=null"}), "computes nothing"));
}

// A weight that is not finite has no members.
TEST_F(EnsembleRun, ADivergedModelIsRefused) {
  LoadedConfig loaded = tiny().config({"ensemble.members=2"});
  ensemble::ScoreOptions options;
  options.console = nullptr;
  const WeightLoader broken = [&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    weights_in(weights())(store, layouts);
    for (const ParameterLayout& layout : layouts) {
      if (!ensemble::changes(layout.spec, loaded.config.model)) continue;
      std::vector<float> values = store.download_as<float>(master_name(layout.spec.name));
      values[7] = std::nanf("");
      upload_master(store, layout, values);
    }
  };
  const std::string sentence = sentence_of(ExitCode::run_failed, [&] {
    score_ensemble(loaded, test_plugin_host(), origin_of_weights(weights()), broken, options);
  });
  EXPECT_TRUE(contains(sentence, "element 7 of the weight"));
}

}  // namespace
}  // namespace mulligan::end_to_end::ensemble_test
