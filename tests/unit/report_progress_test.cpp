// Progress lines, the log of a run, and metrics.jsonl of a run that goes on.
#include "framework/report/progress.h"

#include <gtest/gtest.h>

#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "framework/core/file.h"
#include "framework/report/metrics_file.h"
#include "framework/report/metrics_reader.h"
#include "framework/report/run_log.h"
#include "framework/report/tensorboard.h"
#include "framework/report/trials.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::report_progress_test {
namespace {

using mulligan::test_support::ScratchFolder;

class FakeSink : public ProgressSink {
 public:
  explicit FakeSink(Terminal terminal = {}) : terminal_(terminal) {}
  Terminal terminal() const override { return terminal_; }
  void show_live(std::string_view text) override {
    shown = text;
    all_shown.emplace_back(text);
  }
  void clear_live() override {
    shown.clear();
    ++cleared;
  }
  void progress_line(std::string_view text) override { lines.emplace_back(text); }

  std::string shown;
  std::vector<std::string> all_shown;
  std::vector<std::string> lines;
  int cleared = 0;

 private:
  Terminal terminal_;
};

constexpr Terminal plain_terminal{.live = true, .colour = false, .columns = 80};

class ProgressTest : public testing::Test {
 public:
  FakeSink pipe, terminal{plain_terminal};
  double now = 100;
  Progress::Clock clock = [this] { return now; };
};

TEST_F(ProgressTest, ShortPhasesShowNothing) {
  for (FakeSink* sink : {&pipe, &terminal}) {
    Progress progress(sink, {.what = "encoding", .unit = "documents", .total = 10}, clock);
    for (int i = 0; i < 10; ++i) {
      now += 0.199;
      progress.advance();
    }
  }
  EXPECT_TRUE(pipe.lines.empty());
  EXPECT_TRUE(terminal.all_shown.empty());
  EXPECT_EQ(terminal.cleared, 0);
}

TEST_F(ProgressTest, ATerminalShowsOneLineThatGoesWithThePhase) {
  {
    Progress progress(&terminal, {.what = "encoding", .unit = "documents", .total = 5000}, clock);
    now += 4;
    progress.advance(1000);
    EXPECT_EQ(terminal.shown, "encoding  ====----------------  20 %  250 documents/s  0:04  0:16 left");
    now += 0.1;  // too soon for another
    progress.advance(1000);
    EXPECT_EQ(terminal.all_shown.size(), 1u);
    now += 0.11;
    progress.advance(1000);
    EXPECT_EQ(terminal.all_shown.size(), 2u);
  }
  EXPECT_EQ(terminal.shown, "");
  EXPECT_EQ(terminal.cleared, 1);
}

TEST_F(ProgressTest, APipeGetsALineEveryTenPerCentAndTheLastOne) {
  {
    Progress progress(&pipe, {.what = "encoding", .unit = "bytes", .total = 100e6}, clock);
    for (int i = 0; i < 100; ++i) {
      now += 0.4;
      progress.advance(1e6);
    }
  }
  ASSERT_EQ(pipe.lines.size(), 10u);
  EXPECT_EQ(pipe.lines.front(), "encoding: 10 %, 10.0 of 100 MB, 2.50 MB/s, 0:04, 0:36 left");
  EXPECT_EQ(pipe.lines.back(), "encoding: 100 %, 100 of 100 MB, 2.50 MB/s, 0:40, 0:00 left");
  EXPECT_TRUE(pipe.all_shown.empty());
}

TEST_F(ProgressTest, ASlowPhaseGetsALineEveryTenSecondsAtFirst) {
  Progress progress(&pipe, {.what = "scoring", .unit = "tokens", .total = 1e6}, clock);
  const auto run = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now += 1;
      progress.advance(10);
    }
    return pipe.lines.size();
  };
  EXPECT_EQ(run(200), 20u);
  EXPECT_LT(run(3400), 110u);  // an hour is not a flood of lines
}

TEST_F(ProgressTest, WorkOfAnEarlierProcessIsNoPartOfTheRate) {
  Progress progress(&pipe, {.what = "scoring", .unit = "tokens", .total = 1000, .done = 500}, clock);
  now += 10;
  progress.advance(100);
  ASSERT_EQ(pipe.lines.size(), 1u);
  EXPECT_EQ(pipe.lines[0], "scoring: 60 %, 600 of 1,000 tokens, 10.0 tokens/s, 0:10, 0:40 left");
}

TEST_F(ProgressTest, APhaseMaySetItsOwnWordsAndTimeLeft) {
  Progress progress(&terminal, {.what = "training", .total = 1, .plain_lines = false}, clock);
  EXPECT_FALSE(progress.due());
  now += 60;
  EXPECT_TRUE(progress.due());
  progress.set(0.5, "step 350  loss 5.062  9,291 tokens/s", 61);
  EXPECT_EQ(terminal.shown,
            "training  ====----  50 %  step 350  loss 5.062  9,291 tokens/s  1:00  1:01 left");
  EXPECT_FALSE(progress.due());
  EXPECT_TRUE(terminal.lines.empty());
}

TEST_F(ProgressTest, APhaseThatCannotTellHowFarItIsTicks) {
  {
    // The fake clock stands three seconds after the start, so that the thread finds a line due at once.
    std::atomic<int> calls{0};
    Progress progress(&terminal, {.what = "training a tokenizer", .ticks = true},
                      [&] { return calls++ == 0 ? 0.0 : 3.0 + calls; });
    for (int i = 0; i < 500 && calls < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_FALSE(terminal.all_shown.empty());
  EXPECT_TRUE(terminal.all_shown[0].starts_with("training a tokenizer  0:0")) << terminal.all_shown[0];
  EXPECT_EQ(terminal.cleared, 1);
}

TEST_F(ProgressTest, ManyThreadsCountTogether) {
  {
    Progress progress(&pipe, {.what = "encoding", .unit = "documents", .total = 4000}, clock);
    now += 20;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) progress.advance();
      });
    }
  }
  ASSERT_FALSE(pipe.lines.empty());
  EXPECT_EQ(pipe.lines.back(), "encoding: 100 %, 4,000 of 4,000 documents, 200 documents/s, 0:20, 0:00 left");
}

TEST_F(ProgressTest, NoSinkIsNoWork) {
  Progress progress(nullptr, {.what = "scoring", .unit = "tokens", .total = 10},
                    []() -> double { throw std::logic_error("the clock was read"); });
  progress.advance();
  progress.set(3);
}

TEST(ProgressLine, NeverReachesTheLastColumn) {
  const ProgressView view{"encoding",           0.52, "1,234,567 of 5,678,901 documents",
                          "12,345 documents/s", 3725, 3500};
  for (const bool colour : {false, true}) {
    for (int columns = 1; columns <= 200; ++columns) {
      const std::string line = live_line(view, {true, colour, columns});
      const std::string shown = std::regex_replace(line, std::regex("\x1b\\[[0-9;]*m"), "");
      EXPECT_LE(std::ssize(shown), std::max(columns - 1, 1)) << line;
    }
  }
  EXPECT_EQ(live_line(view, plain_terminal),
            "encoding  ==========----------  52 %  12,345 documents/s  1:02:05  58:20 left");
  EXPECT_EQ(live_line(view, {true, false, 30}), "encoding  52 %  1:02:05  58:2");
}

TEST(ProgressLine, WordsOfFiguresAndTimes) {
  EXPECT_EQ(count_text(1234, 5678, "documents"), "1,234 of 5,678 documents");
  EXPECT_EQ(count_text(1234, 0, "documents"), "1,234 documents");
  EXPECT_EQ(count_text(1.2e6, 45.6e6, "bytes"), "1.20 of 45.6 MB");
  EXPECT_EQ(rate_text(0.5, "batches"), "0.50 batches/s");
  EXPECT_EQ(rate_text(1.25e6, "bytes"), "1.25 MB/s");
  EXPECT_EQ(clock_text(7), "0:07");
  EXPECT_EQ(clock_text(3723.9), "1:02:03");
  EXPECT_EQ(clock_text(-1), "?");
}

std::string printed(std::FILE* file) {
  std::fflush(file);
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

// A pipe gets no live lines.
TEST(RunLog, AQuietConsoleShowsWarningsAndResultsOnly) {
  const ScratchFolder folder;
  for (const bool quiet : {true, false}) {
    std::FILE* console = std::tmpfile();
    RunLog log({console, quiet}, folder / "log.txt");
    EXPECT_FALSE(log.terminal().live);
    log.line("reading documents");
    log.show_live("encoding 10 %");
    log.progress_line("encoding: 10 %");
    log.clear_live();
    log.detail("for the file alone");
    log.line("warning: nearly full");
    log.result("val_bpb 2.0");
    const std::string all = "reading documents\nencoding: 10 %\n",
                      rest = "warning: nearly full\nval_bpb 2.0\n";
    EXPECT_EQ(printed(console), (quiet ? "" : all) + rest);
    EXPECT_EQ(read_file(folder / "log.txt"), all + "for the file alone\n" + rest);
    std::fclose(console);
  }
}

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
      if (i % 3 == 0) file.validation({{3.0, 1.0, 10, 20, 0.1}, i});
      file.restart(i, "all", 1, 0.1);
    }
    file.validation({{3.0, 1.0, 10, 20, 0.1}, 8, "evaluate"});
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
    file.validation({{3.0, 1.0, 10, 20, 0.1}, 1});
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

}  // namespace
}  // namespace mulligan::report_progress_test
