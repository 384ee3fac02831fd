// metrics.jsonl of a run that goes on: what its checkpoint knows of it, and its event file.
#include <gtest/gtest.h>

#include "framework/core/file.h"
#include "framework/report/metrics_file.h"
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

// A run of eight steps, with all that does not belong to the steps; the mark is that after step 6.
MetricsMark write_run(const std::filesystem::path& path) {
  MetricsFile file(path);
  file.memory({});
  MetricsMark mark;
  for (std::int64_t i = 1; i <= 8; ++i) {
    file.step(step(i));
    if (i % 3 == 0) file.validation({i, 3.0, 1.0, 10, 20, 0.1, "validate", false});
    if (i == 6) mark = file.mark();
    file.restart(i, "all", 1, 0.1);
  }
  file.validation({8, 3.0, 1.0, 10, 20, 0.1, "evaluate", false});
  return mark;
}

TEST(MetricsFile, ARunThatGoesOnFindsItsRecords) {
  const ScratchFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  const MetricsMark mark = write_run(path);
  EXPECT_EQ(mark.records, 8);
  MetricsMark later;
  {
    MetricsFile file(path, 6, mark);
    EXPECT_EQ(file.gap(), "");
    EXPECT_EQ(file.mark(), mark);
    file.memory({});
    file.resume(6, "here");
    file.step(step(7));
    later = file.mark();
  }
  // Once more from the same checkpoint, and from a later one.
  EXPECT_EQ(MetricsFile(path, 7, later).gap(), "");
  EXPECT_EQ(MetricsFile(path, 6, mark).gap(), "");
  // Of a program that did not know the mark yet.
  EXPECT_EQ(MetricsFile(path, 6).gap(), "");
}

TEST(MetricsFile, RecordsThatAreGoneOrOthersAreTold) {
  const ScratchFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  const MetricsMark mark = write_run(path);
  const std::string whole = read_file(path);
  const auto gap_of = [&](const std::string& text) {
    write_file_atomically(path, text);
    return MetricsFile(path, 6, mark).gap();
  };
  EXPECT_NE(gap_of("").find("no longer holds what the run had written up to the checkpoint of step 6"),
            std::string::npos);
  EXPECT_NE(gap_of(whole.substr(0, whole.find("\"step\":5"))), "");
  std::string changed = whole;
  changed.replace(changed.find("3.5"), 3, "2.5");
  EXPECT_NE(gap_of(changed), "");
  const std::size_t line = whole.find("{\"event\":\"step\"");
  EXPECT_NE(gap_of(whole.substr(0, line) + whole.substr(whole.find('\n', line) + 1)), "");
  std::filesystem::remove(path);
  EXPECT_NE(MetricsFile(path, 6, mark).gap(), "");
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
