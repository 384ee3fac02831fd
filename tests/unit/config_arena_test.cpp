// The families qwen2 and modded, the keys of the optimiser benchmark, and what a run of [arena] track = "modded3" must not change.
#include <gtest/gtest.h>

#include "framework/config/config_report.h"
#include "framework/config/run_config.h"
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

const std::string arena_folder = MULLIGAN_SOURCE_DIR "/configs/arena/";

LoadedConfig baseline(const std::vector<std::string>& sets) {
  return load_run_config(arena_folder + "baseline.toml", sets);
}

TEST(ConfigArenaTrack, TheShippedConfigurationsAreHeldToIt) {
  for (const char* name : {"baseline", "05", "10", "37"}) {
    const LoadedConfig loaded = load_run_config(arena_folder + name + ".toml");
    EXPECT_EQ(loaded.config.arena.track, ArenaTrack::modded3) << name;
    EXPECT_EQ(loaded.config.model.vocabulary, 50304) << name;
  }
  EXPECT_EQ(load_run_config(arena_folder + "small.toml").config.arena.track, ArenaTrack::none);
}

TEST(ConfigArenaTrack, WhatIsFreeMayChange) {
  baseline({"train.steps=100", "train.validate_at=[]", "optimizer.matrices.lr=1.0", "train.clip_norm=1.0",
            "ema.decay=0.99", "train.micro_batches=16", "run.seed=7", "train.compute_dtype=fp32",
            "schedule.horizon_steps=200"});
}

struct Refused {
  std::string set, must;
};

class ConfigArenaTrackRefuses : public testing::TestWithParam<Refused> {};

TEST_P(ConfigArenaTrackRefuses, WithTheWayOut) {
  const std::string said = error_of([&] { baseline({GetParam().set}); });
  const std::string key = GetParam().set.substr(0, GetParam().set.find('='));
  EXPECT_TRUE(contains(said, "'" + key + "'", "has " + GetParam().must + "; set that, or leave out [arena]"));
}

INSTANTIATE_TEST_SUITE_P(
    Keys, ConfigArenaTrackRefuses,
    testing::Values(
        Refused{"model.layers=11", "12"}, Refused{"model.mlp_hidden=2048", "3072"},
        Refused{"model.rational_softcap.cap=30", "15.0"}, Refused{"model.rope.base=10000", "1024.0"},
        Refused{"train.tokens_per_step=262144", "524288"}, Refused{"train.sequence_length=512", "1024"},
        Refused{"train.loss_reduction=mean", "\"sum\""}, Refused{"train.budget_seconds=600", "0.0"},
        Refused{"data.order=spans", "\"stream\""}, Refused{"data.documents=separate", "\"joined\""},
        Refused{"data.tokenizer=gpt2.model", "\"none\""}, Refused{"init.from=weights.safetensors", "\"\""},
        Refused{"eval.tokens=0", "10485760"}, Refused{"eval.sequence_length=2048", "1024"},
        Refused{"eval.mode=sliding", "\"rows\""}));

std::string with_rows(const std::string& rows, const std::vector<std::string>& sets = {}) {
  const test_support::ScratchFolder folder;
  const std::string file =
      folder.write("run.toml", "extends = \"" + arena_folder + "baseline.toml\"\n" + rows);
  return error_of([&] { load_run_config(file, sets); });
}

TEST(ConfigArenaTrack, NothingComesBeforeOrAfterTraining) {
  EXPECT_TRUE(contains(with_rows("[quantize]\n[[quantize.tensors]]\nmatch = \"*\"\nformat = \"fp16\"\n"),
                       "[quantize] makes an artifact"));
  EXPECT_TRUE(contains(with_rows("[ttt]\n[ttt.optimizer]\nlr = 0.01\n", {"data.documents=separate"}),
                       "[ttt] trains on what is scored"));
  EXPECT_TRUE(contains(with_rows("", {"train.warmup.steps=5", "train.warmup.keep_muon_momentum=true"}),
                       "passes beyond one for each step"));
  baseline({"train.warmup.steps=5"});
}

TEST(ConfigArenaTrack, EveryStepReadsTheSame) {
  for (const char* row : {"sequence_length = 512", "skip_batches = 1"}) {
    EXPECT_TRUE(contains(
        with_rows(std::string("[[phase]]\nname = \"first\"\nuntil_steps = 5\n") + row + "\n[[phase]]\n"),
        "the phase 'first' has rows or batches of its own"))
        << row;
  }
  EXPECT_TRUE(contains(with_rows("[loss]\nplugin = \"softcap_ce\"\n"), "the loss is 'softcap_ce'"));
}

LoadedConfig load(std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(), "model.family=qwen2");
  return parse_run_config(kSmallConfig, "conf/small.toml", sets);
}

TEST(ConfigFamily, Qwen2HasNoPartOfTheRecordAndSaysSo) {
  const LoadedConfig loaded = load();
  const ModelConfig& model = loaded.config.model;
  EXPECT_EQ(model.softcap, 0);
  EXPECT_EQ(model.q_gain, 0);
  EXPECT_EQ(model.xsa_last_layers, 0);
  EXPECT_EQ(model.norm_eps, 1e-6);
  EXPECT_FALSE(model.skip_weights || model.skip_gates || model.residual_mix || model.qk_norm ||
               model.attention_gate || model.ln_scale);
  EXPECT_EQ(loaded.core.at("model.softcap").origin.text(), "derived");
  EXPECT_EQ(load({"model.norm_eps=1e-5"}).config.model.norm_eps, 1e-5);
}

TEST(ConfigFamily, KeysOfTheRecordAreRefused) {
  for (const std::string key :
       {"model.softcap=15", "model.q_gain=1", "model.skip_gates=true", "model.loop.extra_passes=1",
        "model.lanes.parallel_start=2", "model.xsa_last_layers=2", "model.xsa_last_layers=-1",
        "model.ln_scale=true"}) {
    const std::string sentence = error_of([&] { load({key}); });
    EXPECT_TRUE(contains(sentence, key.substr(0, key.find('=')), "the family \"qwen2\" has no such part"));
  }
  // What is off anyway may be said.
  EXPECT_EQ(load({"model.softcap=0", "model.skip_gates=false"}).config.model.softcap, 0);
}

TEST(ConfigFamily, HeadsMayBeWiderThanTheModelShares) {
  EXPECT_EQ(load({"model.head_width=10"}).config.model.head_width, 10);
  EXPECT_TRUE(contains(error_of([] { load({"model.head_width=7"}); }), "must be even"));
  EXPECT_TRUE(contains(error_of([] { load({"model.heads=64", "model.kv_heads=64"}); }), "has no dimensions"));
  EXPECT_TRUE(contains(error_of([] { load({"model.kv_heads=3"}); }), "does not divide"));
}

}  // namespace
}  // namespace mulligan::config_arena_test
