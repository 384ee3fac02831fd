// metrics.jsonl of a run that goes on: what its checkpoint knows of it, and its event file.
#include <gtest/gtest.h>

#include "framework/core/file.h"
#include "framework/report/metrics_file.h"
#include "framework/report/metrics_reader.h"
#include "framework/report/run_log.h"
#include "framework/report/tensorboard.h"
#include "framework/report/trials.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::report_metrics_test {
namespace {

using mulligan::test_support::ScratchFolder;

StepRecord step(std::int64_t number) {
  StepRecord record;
  record.step = number;
  record.loss_nats = 3.5;
  record.elapsed_seconds = 0.5 * static_cast<double>(number);
  return record;
}

TEST(MetricsFile, ARunThatGoesOnKeepsTheRecordsUpToItsCheckpoint) {
  const ScratchFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  {
    MetricsFile file(path);
    file.memory({});
    for (std::int64_t i = 1; i <= 8; ++i) {
      file.step(step(i));
      if (i % 3 == 0) file.validation({i, 3.0, 1.0, 10, 20, 0.1, "validate", false});
      file.restart(i, "all", 1, 0.1);
    }
    file.validation({8, 3.0, 1.0, 10, 20, 0.1, "evaluate", false});
  }
  MetricsFile(path, 6).resume(6, "here");
  const MetricsHistory kept = read_metrics(path);
  EXPECT_EQ(kept.steps.size(), 6u);
  EXPECT_EQ(kept.validations.size(), 2u) << "not the one at the end";
  EXPECT_EQ(kept.restarts.size(), 5u) << "the one after step 6 is told again";
  EXPECT_EQ(kept.resumes, std::vector<std::int64_t>{6});
  EXPECT_FALSE(kept.memory) << "every process reports its own";
}

TEST(MetricsFile, TheEventFileGrowsWithTheRunAndBeginsAnewWithItsResume) {
  const ScratchFolder folder;
  const auto events = [&] {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "tensorboard"))
      files.push_back(entry.path());
    EXPECT_EQ(files.size(), 1u);
    return read_file(files.at(0));
  };
  {
    MetricsFile file(folder / "metrics.jsonl");
    file.mirror_to(folder / "tensorboard");
    const std::size_t empty = events().size();
    file.step(step(1));
    const std::size_t one = events().size();
    EXPECT_GT(one, empty);
    file.validation({1, 3.0, 1.0, 10, 20, 0.1, "validate", false});
    EXPECT_GT(events().size(), one);
    EXPECT_NE(events().find("val_bpb"), std::string::npos);
    file.step(step(2));
  }
  MetricsFile file(folder / "metrics.jsonl", 1);
  file.mirror_to(folder / "tensorboard");
  EXPECT_NE(events().find("val_bpb"), std::string::npos) << "of before";
}

TEST(Samples, AreReadBackAsTheyWereKept) {
  const ScratchFolder folder;
  EXPECT_TRUE(read_samples(folder / "samples.jsonl").empty());
  add_sample(folder / "samples.jsonl", {"run", "Once\n", " \"upon\" \x1b[1m", 5, 0.5, 7});
  add_sample(folder / "samples.jsonl", {"run", "\xff", "", 0, 0, 0});
  const std::vector<TextSample> samples = read_samples(folder / "samples.jsonl");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].prompt, "Once\n");
  EXPECT_EQ(samples[0].text, " \"upon\" \x1b[1m");
  EXPECT_EQ(samples[0].seed, 7u);
}

std::string printed(std::FILE* file) {
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

TEST(RunLog, WarningsThatHaveScrolledAwayAreShownAgain) {
  const ScratchFolder folder;
  const auto shown = [&](int lines, bool quiet) {
    std::FILE* console = std::tmpfile();
    ConsoleOptions options;
    options.console = console;
    options.quiet = quiet;
    {
      RunLog log(options, folder / "log.txt");
      log.detail("for the file\nalone");
      log.line("warning: half of it is missing");
      for (int i = 0; i < lines; ++i) log.line("a line");
    }
    std::string text = printed(console);
    std::fclose(console);
    return text;
  };
  const std::string twice = "a line\na warning above:\nwarning: half of it is missing\n";
  EXPECT_TRUE(shown(40, false).ends_with(twice));
  EXPECT_EQ(shown(3, false), "warning: half of it is missing\na line\na line\na line\n");
  EXPECT_EQ(shown(40, true), "warning: half of it is missing\n");
  EXPECT_TRUE(read_file(folder / "log.txt").starts_with("for the file\nalone\nwarning: half"));
}

}  // namespace
}  // namespace mulligan::report_metrics_test
