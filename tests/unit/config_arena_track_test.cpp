// [arena] track = "modded3": what a run of the optimiser benchmark must not change. The benchmark's shipped configurations
// keep it; each refusal is one sentence with the way out.
#include <gtest/gtest.h>

#include "tests/unit/config_testing.h"

namespace mulligan::config_arena_track_test {
namespace {

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
  EXPECT_TRUE(contains(said, "'" + key + "'"));
  EXPECT_TRUE(contains(said, "has " + GetParam().must + "; set that, or leave out [arena]"));
}

INSTANTIATE_TEST_SUITE_P(
    Keys, ConfigArenaTrackRefuses,
    testing::Values(
        Refused{"model.layers=11", "12"}, Refused{"model.width=1536", "768"},
        Refused{"model.vocabulary=50257", "50304"}, Refused{"model.heads=12", "6"},
        Refused{"model.mlp_hidden=2048", "3072"}, Refused{"model.attention_scale=0.1", "0.12"},
        Refused{"model.rational_softcap.cap=30", "15.0"}, Refused{"model.rope.base=10000", "1024.0"},
        Refused{"model.rope.form=geometric", "\"half_truncated\""}, Refused{"model.norm_eps=1e-5", "0.0"},
        Refused{"train.tokens_per_step=262144", "524288"}, Refused{"train.sequence_length=512", "1024"},
        Refused{"train.loss_reduction=mean", "\"sum\""}, Refused{"train.budget_seconds=600", "0.0"},
        Refused{"data.order=spans", "\"stream\""}, Refused{"data.documents=separate", "\"joined\""},
        Refused{"data.tokenizer=gpt2.model", "\"none\""}, Refused{"init.from=weights.safetensors", "\"\""},
        Refused{"eval.tokens=0", "10485760"}, Refused{"eval.sequence_length=2048", "1024"},
        Refused{"eval.mode=sliding", "\"rows\""}));

std::string with_rows(const std::string& rows, const std::vector<std::string>& sets = {}) {
  const TemporaryFolder folder;
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

}  // namespace
}  // namespace mulligan::config_arena_track_test
