// Run directories as the runs of one result of the optimiser benchmark.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "tests/unit/config_testing.h"
#include "tools/report_page/run_observations.h"

namespace mulligan::report::report_arena_runs_test {
namespace {

namespace fs = std::filesystem;

// A finished run of 20 steps with validations after 10 and 20.
class ArenaRunFolders : public testing::Test {
 protected:
  std::string make(const std::string& name, int seed, double loss, const std::string& more = "",
                   int tokens = 4096) {
    folder_.write(
        name + "/config.toml",
        fmt::format(
            "[run]\nname = \"{}\"  # default\nseed = {}  # --set\n[train]\nsteps = 20  # x.toml:1\n{}", name,
            seed, more));
    std::string metrics;
    for (const auto& [step, value] : {std::pair{10, loss + 1}, {20, loss}}) {
      metrics += fmt::format(
          R"({{"event":"validation","step":{},"val_loss_nats":{},"val_bpb":null,"val_tokens":{},"val_bytes":0,"seconds":1.0}})"
          "\n",
          step, value, tokens);
    }
    folder_.write(name + "/metrics.jsonl", metrics);
    const nlohmann::ordered_json result = {{"steps", 20},
                                           {"val_loss_nats", loss},
                                           {"val_tokens", tokens},
                                           {"val_bytes", 0},
                                           {"val_bpb", nullptr}};
    folder_.write(name + "/result.json", result.dump());
    return folder_.path(name);
  }

  std::vector<stats::ArenaRun> read(const std::vector<std::string>& directories) {
    notes_.clear();
    return arena_runs(read_runs(directories), notes_);
  }
  std::string refused(const std::vector<std::string>& directories) {
    return refusal_of([&] { read(directories); });
  }

  TemporaryFolder folder_;
  std::vector<std::string> notes_;
};

TEST_F(ArenaRunFolders, GiveTheirValidations) {
  const std::string track = "[arena]\ntrack = \"modded3\"  # x.toml:9\n";
  const auto runs = read({make("a", 1, 3.25, track), make("b", 2, 3.5, track)});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].losses, (std::map<std::int64_t, double>{{10, 4.5}, {20, 3.5}}));
  EXPECT_TRUE(notes_.empty());
}

TEST_F(ArenaRunFolders, WithoutATrackAreNoted) {
  read({make("a", 1, 3.25)});
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_TRUE(contains(notes_[0], "no [arena] track"));
}

TEST_F(ArenaRunFolders, DifferInTheSeedAlone) {
  const std::string a = make("a", 1, 3.25), other = make("b", 2, 3.5, "lr = 2  # --set\n"),
                    same_seed = make("c", 1, 3.75);
  EXPECT_TRUE(contains(refused({a, other}), "so they are not runs of one condition"));
  EXPECT_TRUE(contains(refused({a, same_seed}), "which counts once"));
}

TEST_F(ArenaRunFolders, AreScoredOnTheSameTargets) {
  EXPECT_TRUE(contains(refused({make("a", 1, 3.25), make("b", 2, 3.5, "", 8192)}), "score both on the same"));
}

TEST_F(ArenaRunFolders, LeaveOutNoFinishedSibling) {
  const std::string a = make("a", 1, 3.25), b = make("b", 2, 3.5), worse = make("c", 3, 3.9);
  make("other", 4, 3.1, "lr = 2  # --set\n");
  const std::string said = refused({a, b});
  EXPECT_TRUE(contains(said, "'" + worse + "' is a finished run of the same settings with run.seed = 3"));
  EXPECT_EQ(refused({a, b, worse}), "");
  fs::remove(fs::path(worse) / "result.json");  // a run that was not finished is none
  EXPECT_EQ(refused({a, b}), "");
}

TEST_F(ArenaRunFolders, AreFinishedAndUnchanged) {
  const std::string a = make("a", 1, 3.25);
  folder_.write(
      "a/metrics.jsonl",
      R"({"event":"validation","step":20,"val_loss_nats":3.0,"val_bpb":null,"val_tokens":9,"val_bytes":0,"seconds":1.0})"
      "\n");
  EXPECT_TRUE(contains(refused({a}), "its result 3.25"));
  fs::remove(fs::path(a) / "result.json");
  EXPECT_TRUE(contains(refused({a}), "has no result with a validation loss"));
}

}  // namespace
}  // namespace mulligan::report::report_arena_runs_test
