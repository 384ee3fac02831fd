// A sweep from its file to its table.
#include "tools/sweep/sweep.h"
#include "tests/support/sentence.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"

namespace mulligan::end_to_end::sweep_test {
namespace {

class SweepRun : public testing::Test {
 protected:
  static const std::string& config() {
    static const RunResult run = tiny().train(
        {"train.steps=3", "ttt.batch_documents=4", "ttt.context_tokens=64", "ttt.chunk_tokens=32",
         "ttt.document_fraction=0.3", "ttt.optimizer.lr=0.002", "ttt.adapters.rank=2"});
    static const std::string file = (run.directory / "config.toml").string();
    return file;
  }

  // A sweep over two seeds with these rows; the configuration is that of a finished tiny run.
  std::string write(const std::string& rows) {
    const std::filesystem::path file = tiny().folder() / "sweep.toml";
    write_file_atomically(file, "config = \"" + config() + "\"\ndirectory = \"" + folder().string() +
                                    "\"\nseeds = [3, 4]\n" + rows);
    return file.string();
  }
  // Each test has its own.
  std::filesystem::path folder() const {
    return tiny().folder() / testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  static SweepResult run(const Sweep& sweep, const Overrides& overrides = {}) {
    return run_sweep(sweep, overrides, test_plugin_host(), {}, {nullptr});
  }
  std::string refusal(const std::string& rows) {
    return refusal_of(ExitCode::bad_configuration, [&] { read_sweep(write(rows)); });
  }
};

constexpr const char* kWarm = R"(
[[rows]]
name = "warm"
set = ["ttt.adapters.warm_start_a=true"]
)";
constexpr const char* kOthers = R"(
[[rows]]
name = "fresh"
set = ["ttt.adapters.warm_start_a=false"]
[[rows]]
name = "ruin"
set = ["ttt.optimizer.lr=0.5"]
)";

TEST_F(SweepRun, RowsOfTestTimeTrainingShareATraining) {
  const Sweep sweep = read_sweep(write(std::string(kWarm) + kOthers));
  const SweepResult result = run(sweep);
  ASSERT_EQ(result.cells.size(), 3u);
  for (std::size_t seed = 0; seed < 2; ++seed) {
    const SweepCell& warm = result.cells[0][seed];
    const SweepCell& fresh = result.cells[1][seed];
    EXPECT_EQ(warm.without.val_bpb, fresh.without.val_bpb);
    EXPECT_NE(warm.final_score().val_bpb, fresh.final_score().val_bpb);
    EXPECT_NE(warm.drift, fresh.drift);
    EXPECT_GT(warm.norm, 0);
    EXPECT_FALSE(warm.collapsed);
    EXPECT_TRUE(result.cells[2][seed].collapsed);
  }
  EXPECT_NE(result.cells[0][0].without.val_bpb, result.cells[0][1].without.val_bpb) << "seeds must differ";
  const std::string table = sweep_table(sweep, result);
  for (const char* part :
       {"seed 3", "seed 4", "no test-time training", "warm", "fresh", "A - A0", "* collapsed"})
    EXPECT_TRUE(contains(table, part)) << part << table;

  // The second time nothing is trained, and every figure is the same.
  const auto trained_at = std::filesystem::last_write_time(folder() / "shared/seed_3/result.json");
  const SweepResult again = run(sweep);
  EXPECT_EQ(std::filesystem::last_write_time(folder() / "shared/seed_3/result.json"), trained_at);
  EXPECT_EQ(sweep_table(sweep, again), table);
  // Another configuration is trained anew.
  const SweepResult other = run(read_sweep(write(kWarm)), {"train.steps=4"});
  EXPECT_NE(other.cells[0][0].without.val_bpb, result.cells[0][0].without.val_bpb);
  const auto json = nlohmann::json::parse(read_file(folder() / "sweep.json"));
  EXPECT_EQ(json.at("rows").at(0).at("seeds").at(1).at("with_ttt").at("val_bpb"),
            other.cells[0][1].with->val_bpb);
}

TEST_F(SweepRun, RowsMayTrainDifferently) {
  const Sweep sweep =
      read_sweep(write("[[rows]]\nname = \"a\"\nset = []\n[[rows]]\nname = \"b\"\nset = "
                       "[\"optimizer.rest.lr=0.02\"]\n"));
  const SweepResult result = run(sweep);
  EXPECT_NE(result.cells[0][0].without.val_bpb, result.cells[1][0].without.val_bpb);
  const std::string table = sweep_table(sweep, result);
  EXPECT_TRUE(contains(table, "  no test-time training", "than 'a' of the same seed"));

  // What an earlier training left is read again, and a damaged file of it is reported with its name.
  const std::filesystem::path left = folder() / "shared/seed_3/result.json";
  for (const char* damage : {"{\"config_sha256\": ", "{\"config_sha256\": 5}"}) {
    write_file_atomically(left, damage);
    EXPECT_TRUE(contains(sentence_of(ExitCode::bad_data, [&] { run(sweep); }), left.string()));
  }
}

// Nothing of it is the user's --set.
TEST_F(SweepRun, ABadValueIsBlamedOnTheRowThatHasIt) {
  const std::string file =
      write("[[rows]]\nname = \"a\"\n[[rows]]\nname = \"b\"\nset = [\"train.micro_batches=7\"]\n");
  const std::string text = read_file(file);
  const auto line = 1 + std::ranges::count(text.substr(0, text.find("set = [\"train")), '\n');
  const auto sentence = [&](const std::vector<std::string>& overrides) -> std::string {
    return refusal_of([&] { run(read_sweep(file), overrides); });
  };
  EXPECT_TRUE(contains(sentence({}), fmt::format("'train.micro_batches' ({}:{})", file, line)));
  EXPECT_FALSE(contains(sentence({}), "--set"));
  EXPECT_TRUE(contains(sentence({"model.heads=0"}), "--set: 'model.heads'"));
}

// A cell without test-time training, or with.
SweepCell cell(double without, std::optional<double> with = {}) {
  SweepCell cell;
  cell.without.val_bpb = without;
  if (with) cell.with.emplace().val_bpb = *with;
  return cell;
}

Sweep two_rates(std::vector<double> seeds) {
  Sweep sweep;
  sweep.seeds = std::move(seeds);
  sweep.rows = {{"low rate", "", {}}, {"high rate", "", {}}};
  sweep.baseline = "high rate";
  return sweep;
}

// Rows are compared with the baseline's row of the same seed, never with themselves.
TEST(SweepTable, TheGainIsOverTheBaselineOfTheSameSeed) {
  const Sweep sweep = two_rates({1, 2, 3});
  const std::string plain = sweep_table(
      sweep, SweepResult{{{cell(3.389), cell(3.4), cell(3.39)}, {cell(3.619), cell(3.61), cell(3.61)}}});
  EXPECT_TRUE(contains(plain, "3.39300 +- 0.00608 | +0.22000 +- 0.01000 |\n",
                       "3.61300 +- 0.00520 | baseline            |\n",
                       "gain: lower bits per byte than 'high rate' of the same seed\n"));
  EXPECT_FALSE(contains(plain, "TTT"));

  const std::string adapted =
      sweep_table(sweep, SweepResult{{{cell(3.0, 2.5), cell(3.2, 2.7), cell(3.1, 2.6)},
                                      {cell(3.1, 3.0), cell(3.2, 3.1), cell(3.3, 3.2)}}});
  EXPECT_TRUE(contains(adapted, "+0.50000 +- 0.10000 | +0.50000 +- 0.00000 |\n",
                       "| baseline            | +0.10000 +- 0.00000 |\n"));
}

TEST(SweepTable, OfFewerThanThreeSeedsItSaysNoGain) {
  const Sweep sweep = two_rates({1, 2});
  const std::string text =
      sweep_table(sweep, SweepResult{{{cell(3.389), cell(3.4)}, {cell(3.619), cell(3.61)}}});
  EXPECT_TRUE(contains(text, "| 3.39450    | -          |\n"));
  EXPECT_EQ(text.find("+"), text.find("+- sd")) << text;
  EXPECT_TRUE(contains(text, "fewer than three seeds"));
}

TEST_F(SweepRun, ARowMayHaveAConfigurationOfItsOwn) {
  const std::string other = (tiny().folder() / "other.toml").string();
  write_file_atomically(
      other, "extends = \"" + config() +
                 "\"\n[model.loop]\nstart_fraction = 0.0\n[[phase]]\nuntil_steps = 1\n[[phase]]\n");
  const Sweep sweep =
      read_sweep(write("metric = \"val_loss_nats\"\nmargin = 0.5\n[[rows]]\nname = \"one\"\nset = "
                       "[\"model.loop.start_fraction=0.0\"]\n[[rows]]\nname = \"two\"\nconfig = "
                       "\"other.toml\"\n"));
  EXPECT_EQ(sweep.rows[1].config, other);
  const SweepResult result = run(sweep);
  ASSERT_EQ(result.cells.size(), 2u);
  const stats::Study study = sweep_study(sweep, result);
  EXPECT_EQ(study.metric, "val_loss_nats");
  ASSERT_EQ(study.comparisons.size(), 1u);
  EXPECT_FALSE(study.comparisons[0].reportable) << "one seed says nothing of equality either";
  EXPECT_EQ(result.cells[0][0].without.val_bpb, result.cells[1][0].without.val_bpb)
      << "phases that change nothing are the run without";
}

TEST_F(SweepRun, BadFilesAreRefused) {
  EXPECT_TRUE(contains(refusal("baseline = \"c\"\n[[rows]]\nname = \"a\"\nset = []\n"),
                       "names no [[rows]]; there are: a"));
  EXPECT_TRUE(contains(refusal(""), "[[rows]]"));
  EXPECT_TRUE(contains(refusal("[[rows]]\nname = \"a\"\nsets = []\n"), "'rows.set'"));
  EXPECT_TRUE(
      contains(refusal("[[rows]]\nname = \"a b\"\nset = []\n[[rows]]\nname = \"a_b\"\nset = []\n"), "twice"));
}

// The ablation of the record's table: three rows that differ in nothing but warm start and weight decay.
TEST(SweepFiles, TheAblationHasTheRowsOfTheRecordsTable) {
  const Sweep sweep = read_sweep(MULLIGAN_SOURCE_DIR "/configs/ablations/warm_start_wd/sweep.toml");
  EXPECT_EQ(sweep.seeds, (std::vector<double>{42, 314, 1337}));
  ASSERT_EQ(sweep.rows.size(), 3u);
  const double decay[] = {1, 1, 2};
  const bool warm[] = {true, false, true};
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(sweep.rows[row].set.size(), 2u);
    const RunConfig c = load_run_config(sweep.config, sweep.rows[row].set).config;
    ASSERT_TRUE(c.ttt);
    EXPECT_EQ(c.ttt->optimizer.keys.find("weight_decay")->value.as<double>(), decay[row]);
    EXPECT_EQ(c.ttt->adapters.keys.find("warm_start_a")->value.as<bool>(), warm[row]);
  }
}

}  // namespace
}  // namespace mulligan::end_to_end::sweep_test
