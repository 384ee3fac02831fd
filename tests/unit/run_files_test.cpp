// A run that another one replaces: whatever moment the process dies at, one of the two is whole.
#include "framework/run/run_files.h"

#include <gtest/gtest.h>

#include <map>

#include "framework/core/file.h"
#include "framework/core/temporary_path.h"
#include "framework/report/run_directory.h"
#include "tests/unit/checkpoint_support.h"

namespace mulligan::run_files_test {
namespace {

namespace fs = std::filesystem;
using test_support::ScratchFolder;
using test_support::write_sample;

// Text by path of all files below a folder.
std::map<std::string, std::string> files_below(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(folder).string()] = read_file(entry.path());
  }
  return files;
}

class ReplacedRunTest : public ::testing::TestWithParam<const char*> {
 protected:
  ReplacedRunTest() {
    for (const char* name :
         {"config.toml", "log.txt", "metrics.jsonl", "weights.safetensors", "result.json"}) {
      scratch_.write("run/" + std::string(name), "old");
    }
    scratch_.write("run/notes.txt", "the user's own");
    write_sample(checkpoints(), 5);
    before_ = files_below(scratch_.path());
  }
  fs::path run() const { return scratch_.path() / "run"; }
  fs::path checkpoints() const { return scratch_.path() / GetParam(); }
  ReplacedRun replaced() const { return {run(), checkpoints()}; }
  void start_anew() {
    for (const char* name : {"config.toml", "log.txt", "metrics.jsonl"})
      scratch_.write("run/" + std::string(name), "new");
  }

  ScratchFolder scratch_;
  std::map<std::string, std::string> before_;
};

TEST_P(ReplacedRunTest, GoesWhenTheNewOneHasSomethingToShow) {
  replaced().set_aside();
  EXPECT_FALSE(replaced().worth_keeping());
  start_anew();
  write_sample(checkpoints(), 3);
  replaced().forget();
  const auto after = files_below(scratch_.path());
  EXPECT_EQ(after.at("run/notes.txt"), "the user's own");
  EXPECT_EQ(after.at("run/log.txt"), "new");
  EXPECT_EQ(after.size(), 4u + 3u) << "configuration, log, metrics, notes and one checkpoint";
  EXPECT_EQ(replaced().recover(), "");
}

TEST_P(ReplacedRunTest, ComesBackWhenTheNewOneHasNothing) {
  replaced().set_aside();
  start_anew();
  EXPECT_NE(replaced().recover(), "");
  auto after = files_below(scratch_.path());
  EXPECT_EQ(after.at("run/log_failed.txt"), "new");
  EXPECT_EQ(after.at("run/metrics_failed.jsonl"), "new");
  after.erase("run/log_failed.txt");
  after.erase("run/metrics_failed.jsonl");
  EXPECT_EQ(after, before_);
  EXPECT_EQ(replaced().recover(), "");
}

TEST_P(ReplacedRunTest, KilledAfterTheFirstCheckpointTheNewOneStays) {
  replaced().set_aside();
  start_anew();
  write_sample(checkpoints(), 3);
  EXPECT_EQ(replaced().recover(), "");
  EXPECT_EQ(files_below(scratch_.path()).at("run/log.txt"), "new");
  EXPECT_EQ(list_checkpoints(checkpoints()).size(), 1u);
}

// Every state between two renames of set_aside().
TEST_P(ReplacedRunTest, KilledWhileItWasForgottenTheNewOneStays) {
  replaced().set_aside();
  start_anew();
  const fs::path mark = run() / ".replaced.whole";
  ASSERT_TRUE(fs::exists(mark));
  replaced().forget();
  scratch_.write("run/.replaced.whole", "");
  EXPECT_EQ(replaced().recover(), "");
  EXPECT_EQ(read_file(run() / "log.txt"), "new");
  EXPECT_FALSE(fs::exists(mark));
}

TEST_P(ReplacedRunTest, KilledWhileItWasSetAsideItIsWhole) {
  fs::create_directories(run() / ".replaced");
  fs::create_directories(checkpoints() / ".replaced");
  const std::vector<std::string> moved = {"log.txt", "result.json", "weights.safetensors"};
  for (std::size_t count = 0; count <= moved.size(); ++count) {
    fs::create_directories(run() / ".replaced");
    for (std::size_t i = 0; i < count; ++i) fs::rename(run() / moved[i], run() / ".replaced" / moved[i]);
    EXPECT_NE(replaced().recover(), "") << count;
    EXPECT_EQ(files_below(scratch_.path()), before_) << count;
  }
  replaced().set_aside();  // and before the file that ends it
  fs::remove(run() / ".replaced.whole");
  EXPECT_NE(replaced().recover(), "");
  EXPECT_EQ(files_below(scratch_.path()), before_);
}

TEST_P(ReplacedRunTest, WhatIsNoRunsIsRefusedAndKept) {
  scratch_.write(std::string(GetParam()) + "/step_00000007/thesis.txt", "precious");
  EXPECT_TRUE(refuses([&] { replaced().require_only_a_run(); }, "thesis.txt"));
  keep_newest_checkpoints(checkpoints(), 1);
  EXPECT_TRUE(fs::exists(checkpoints() / "step_00000007" / "thesis.txt"));
}

INSTANTIATE_TEST_SUITE_P(Places, ReplacedRunTest, ::testing::Values("run/checkpoints", "elsewhere", "run"));

TEST(RunDirectory, LeftoversOfAnotherProcessAreRemovedAndNoOthers) {
  const ScratchFolder scratch;
  const std::string own = temporary_name("weights.safetensors").filename().string();
  const std::string host = own.substr(own.rfind('.') + 1), gone = ".tmp.999999999.1.0." + host;
  const char* old = "result.json.tmp.999999999.1.11.other-host";
  const std::map<std::string, bool> kept = {
      {"metrics.jsonl" + gone, false},
      {"trials/eval-1.json" + gone, false},
      {"trials/eval-1a2b3c4d/ttt_result.json" + gone, false},
      {"ledger.json.tmp.999999999.0.3." + host, false},  // of another rank
      // Of another machine, where only the hour tells whether the process lives.
      {old, false},
      {"result.json.tmp.999999999.0.11.other-host", true},
      {"report.html.tmp.1.0.0." + host, true},  // of a process that is always there
      {"notes" + gone, true},
      {"log.txt.tmp.x", true},
      {"log.txt.tmp.999999999.1", true},
      {"trials/eval-1.json", true}};
  for (const auto& [name, stays] : kept) scratch.write(name, "x");
  fs::last_write_time(scratch / old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  remove_temporary_leftovers(scratch.path());
  for (const auto& [name, stays] : kept) EXPECT_EQ(fs::exists(scratch.path() / name), stays) << name;
}

}  // namespace
}  // namespace mulligan::run_files_test
