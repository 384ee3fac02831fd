// A run that was interrupted and resumed is the run that was not: every loss, the weights, the score and the
// accounts, compared with != and no tolerance. And what resuming refuses.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/file.h"
#include "framework/core/safetensors.h"
#include "framework/data/shard.h"
#include "framework/ranks/communicator.h"
#include "framework/train/trainer.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/long_tests.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"
#include "tests/support/test_device.h"

namespace mulligan::end_to_end::resume_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Every part of the state at once: averages, bf16 masters, two micro-batches and clipping; depth recurrence that starts half way; a
// schedule with warm restarts and a warm-up; losses that are reported every third step.
Overrides everything() {
  return {"train.steps=24",       "train.micro_batches=2", "train.log_every=3",
          "train.warmup.steps=1", "ema.decay=0.9",         "parameters.1.master_dtype=bf16",
          "schedule.plugin=sgdr", "schedule.period=5",     "run.name=everything"};
}

// The exit code with which such a run is refused, and the sentence.
std::pair<ExitCode, std::string> refusal(const std::string& directory, const Overrides& overrides,
                                         const std::string& resume = "") {
  return ending_of([&] { tiny().train_in(directory, overrides, resume); });
}

// What depends on the clock, or on having been resumed.
Json without_times(Json event) {
  for (const char* key :
       {"tokens_per_second", "step_seconds", "slowest_step_seconds", "elapsed_seconds", "seconds"}) {
    event.erase(key);
  }
  return event;
}

// A run whose checkpoints are all kept: after step 2, then whenever the disk is ready again, and after
// the last step.
class Resume : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = tiny().next_directory();
    result_ =
        tiny().train_in(directory_, with(everything(), {"checkpoint.every_steps=2", "checkpoint.keep=100"}));
  }
  static std::string copy_of_run() {
    std::string copy = tiny().next_directory();
    fs::create_directories(copy);
    fs::copy(directory_, copy, fs::copy_options::recursive);
    return copy;
  }
  static std::string checkpoint(std::int64_t step) {
    return (fs::path(directory_) / "checkpoints" / checkpoint_name(step)).string();
  }
  static std::string directory_;
  static RunResult result_;
};
std::string Resume::directory_;
RunResult Resume::result_;

// Nor does a resumption where there is nothing yet: it starts from the beginning.
TEST_F(Resume, CheckpointsDoNotChangeTheRun) {
  const RunResult without =
      tiny().train_in(tiny().next_directory(), with(everything(), {"checkpoint.at_end=false"}), "auto");
  EXPECT_EQ(without.first_step, 0);
  EXPECT_EQ(without.step_loss_nats, result_.step_loss_nats);
}

// A chain of processes, each resumed from what the one before left one step after it began.
TEST_F(Resume, AfterAnyStepTheRunGoesOnBitForBit) {
  fs::path from = list_checkpoints(fs::path(directory_) / "checkpoints").front().path;
  const std::int64_t apart = long_tests() ? 1 : 3;  // in the short form every third step
  for (std::int64_t step = 2; step < 24; step += apart) {
    SCOPED_TRACE(step);
    const std::string copy = tiny().next_directory();
    const RunResult result = tiny().train_in(
        copy, with(everything(), {"checkpoint.every_steps=" + std::to_string(apart), "checkpoint.keep=100"}),
        from.string());
    ASSERT_EQ(result.first_step, step);
    expect_same_run(directory_, result_, copy, result);
    from = list_checkpoints(fs::path(copy) / "checkpoints").front().path;
  }
}

// The same in the run's own directory, where the log and the metrics go on.
TEST_F(Resume, InPlaceTheMetricsAreThoseOfAnUninterruptedRun) {
  const std::string copy = copy_of_run();
  const std::int64_t step = list_checkpoints(fs::path(directory_) / "checkpoints").front().step;
  for (const CheckpointEntry& entry : list_checkpoints(fs::path(copy) / "checkpoints")) {
    if (entry.step > step) fs::remove_all(entry.path);
  }
  std::ofstream(fs::path(copy) / "metrics.jsonl", std::ios::app)
      << "{\"event\":\"step\",\"st";  // killed while writing
  const RunResult result = tiny().train_in(copy, everything(), "auto");
  EXPECT_EQ(result.first_step, step);
  expect_same_run(directory_, result_, copy, result);
  for (const char* kind : {"initial_loss", "step", "restart", "phase_start"}) {
    const std::vector<Json> expected = events_of(directory_, kind), seen = events_of(copy, kind);
    ASSERT_EQ(seen.size(), expected.size()) << kind;
    for (std::size_t i = 0; i < seen.size(); ++i)
      EXPECT_EQ(without_times(seen[i]), without_times(expected[i]));
  }
  ASSERT_EQ(events_of(copy, "resume").size(), 1u);
  EXPECT_EQ(events_of(copy, "resume")[0].at("step"), step);
  EXPECT_EQ(events_of(copy, "memory").size(), 1u);  // the second process's alone
  const Json straight = result_of(directory_);
  const Json json = result_of(copy);
  EXPECT_EQ(json.at("train_loss"), straight.at("train_loss"));
  EXPECT_EQ(json.at("train_loss").at("steps_counted"), 24);
  EXPECT_EQ(json.at("train_loss").at("window"), Json({0, 24}));
  EXPECT_TRUE(json.contains("resumed_from"));
  EXPECT_FALSE(straight.contains("resumed_from"));
  // Time before the interruption counts.
  EXPECT_GT(json.at("seconds").at("train").get<double>(),
            open_checkpoint(checkpoint(step)).manifest.progress.elapsed_seconds);
}

// Killed between the evaluation at the end and the result: the score is reported once.
TEST_F(Resume, AnEvaluationThatWasNotSeenThroughIsToldOnce) {
  const std::string copy = copy_of_run();
  for (const char* name : {"result.json", "weights.safetensors"}) fs::remove(fs::path(copy) / name);
  const RunResult result = tiny().train_in(copy, everything(), "auto");
  EXPECT_EQ(result.first_step, 24);
  const std::vector<Json> expected = events_of(directory_, "validation"),
                          seen = events_of(copy, "validation");
  ASSERT_EQ(expected.size(), 1u);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(without_times(seen[0]), without_times(expected[0]));
}

TEST_F(Resume, ADamagedCheckpointIsToldAndTheOneBeforeUsed) {
  const std::string copy = copy_of_run();
  const auto entries = list_checkpoints(fs::path(copy) / "checkpoints");
  fs::resize_file(entries.back().path / "tensors.safetensors", 1000);
  const RunResult result = tiny().train_in(copy, everything(), "auto");
  EXPECT_EQ(result.first_step, entries[entries.size() - 2].step);
  expect_same_run(directory_, result_, copy, result);
  const std::string log = read_file(fs::path(copy) / "log.txt");
  EXPECT_TRUE(contains(log, "warning: the checkpoint file", "set aside"));
  // Named outright it is refused.
  const auto [code, sentence] = refusal(
      tiny().next_directory(), everything(),
      (fs::path(copy) / "checkpoints" / ("set_aside_" + entries.back().path.filename().string())).string());
  EXPECT_TRUE(contains(sentence, "its sha256 is not that of its manifest"));
  EXPECT_EQ(code, ExitCode::bad_data);
}

// Of the checkpoint's configuration the paths in plugins' keys are compared alone; code comes from this run's own.
TEST_F(Resume, APluginsKeyMayNameAFile) {
  Overrides cuda = {"backend.plugin=cuda", "backend.device=" + test_device(), "backend.kernel_file=none",
                    "checkpoint.every_steps=1"};
  // What is compared is there after one row; the emulated device takes seconds for a score.
  if (!long_tests()) cuda = with(cuda, {"train.tokens_per_step=64", "eval.tokens=64"});
  const std::string directory = tiny().next_directory();
  tiny().train_in(directory, with(cuda, {"train.steps=1"}));
  const RunResult resumed = tiny().train_in(directory, with(cuda, {"train.steps=2"}), "auto");
  EXPECT_EQ(resumed.first_step, 1);
}

// A cosine over ten steps whose end moves: both rates are told, and the key that keeps the old one.
TEST_F(Resume, AScheduleThatChangesIsToldWithBothRates) {
  const Overrides cosine = {"train.steps=10", "schedule.plugin=cosine", "schedule.by=step",
                            "run.name=cosine"};
  const std::string first = tiny().next_directory(), longer = tiny().next_directory(),
                    kept = tiny().next_directory();
  tiny().train_in(first, cosine);
  const std::string at_end = (fs::path(first) / "checkpoints" / checkpoint_name(10)).string();
  tiny().train_in(longer, with(cosine, {"train.steps=20"}), at_end);
  const std::string told = "(schedule.horizon_steps = 10 keeps it)";
  EXPECT_TRUE(contains(read_file(fs::path(longer) / "log.txt"), " at step 11 was to be 0 and is ", told));
  const auto refused = [&](const Overrides& change) {
    return refusal(tiny().next_directory(), with(cosine, with(change, {"ledger.rules=strict"})), at_end)
        .second;
  };
  EXPECT_TRUE(contains(refused({"train.steps=20"}), told + "; under ledger.rules = \"strict\""));
  tiny().train_in(kept, with(cosine, {"train.steps=20", "schedule.horizon_steps=10"}), at_end);
  EXPECT_FALSE(contains(read_file(fs::path(kept) / "log.txt"), "the learning rate of"));
}

// What moves no rate is no change of the schedule. The CPU is the same.
TEST_F(Resume, ALongerRunOfAConstantRateKeepsItsSchedule) {
  const Overrides constant = {"train.steps=4", "schedule.plugin=constant", "run.name=constant"};
  const std::string first = tiny().next_directory(), longer = tiny().next_directory();
  tiny().train_in(first, constant);
  const std::string at_end = (fs::path(first) / "checkpoints" / checkpoint_name(4)).string();
  tiny().train_in(longer, with(constant, {"train.steps=6"}), at_end);
  for (const char* warning : {"the learning rate of", "was written on a CPU"})
    EXPECT_FALSE(contains(read_file(fs::path(longer) / "log.txt"), warning));
  const auto refused = [&](const char* change) {
    const Overrides strict = with(constant, {"ledger.rules=strict", change});
    return refusal(tiny().next_directory(), strict, at_end).second;
  };
  EXPECT_FALSE(contains(refused("train.steps=6"), "the learning rate of"));
  EXPECT_TRUE(contains(refused("optimizer.matrices.lr=0.5"), "[optimizer.matrices] at step 5 was to be ",
                       " and is 0.5; under"));
}

TEST_F(Resume, WhatDoesNotContinueTheRunIsRefusedByName) {
  const auto refused = [&](const Overrides& change) {
    const auto [code, sentence] =
        refusal(tiny().next_directory(), with(everything(), change), checkpoint(24));
    EXPECT_TRUE(code == ExitCode::bad_configuration || code == ExitCode::bad_data) << sentence;
    return sentence;
  };
  EXPECT_TRUE(contains(refused({"model.layers=5"}), "model.layers = 4"));
  EXPECT_TRUE(
      contains(refused({"optimizer.rest.plugin=sgd", "optimizer.rest.lr=0.01"}), "optimizer.rest.plugin"));
  EXPECT_TRUE(contains(refused({"parameters.1.master_dtype=fp32"}), "parameters.1.master_dtype"));
  EXPECT_TRUE(contains(refused({"train.tokens_per_step=512"}), "train.tokens_per_step"));
  EXPECT_TRUE(contains(refused({"train.micro_batches=1"}), "rows of 128"));
  EXPECT_TRUE(contains(refused({"ema.decay=0.0"}), "'ema/"));
  EXPECT_TRUE(contains(refused({"train.steps=10"}), "train.steps = 10, but the run has made 24 steps"));
  // A run that keeps its budget goes on, also past it.
  EXPECT_TRUE(contains(refused({"train.budget_seconds=1e-9"}),
                       "train.budget_seconds = 1e-09, but the run has trained for "));
  EXPECT_TRUE(contains(refusal(tiny().next_directory(), everything(), "/nowhere").second, "/nowhere"));
}

TEST_F(Resume, AVanishedOrChangedShardIsNamed) {
  const std::string shards = tiny().next_directory();
  fs::create_directories(shards);
  fs::copy(tiny().folder() / "data/fineweb_train_000000.bin", shards);
  const Overrides elsewhere = with(everything(), {"data.train=" + shards + "/*.bin"});
  EXPECT_TRUE(contains(refusal(tiny().next_directory(), elsewhere, checkpoint(24)).second,
                       "'fineweb_train_000001.bin'"));
  for (const auto& entry : fs::directory_iterator(tiny().folder() / "data")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("fineweb_train_") || name == "fineweb_train_000000.bin") continue;
    fs::copy(entry.path(), shards);
  }
  EXPECT_EQ(refusal(tiny().next_directory(), elsewhere, checkpoint(24)).second, "");  // data may move
  write_shard(fs::path(shards) / "fineweb_train_000001.bin", std::vector<std::uint16_t>(700, 5));
  const std::string changed = refusal(tiny().next_directory(), elsewhere, checkpoint(24)).second;
  EXPECT_TRUE(contains(changed, "'fineweb_train_000001.bin' has"));
}

// The same tensors under a manifest that says they were written by another library, or on another CPU.
TEST_F(Resume, AnotherStateVersionIsRefusedAndAnotherLibraryOrCpuTold) {
  const Checkpoint saved = open_checkpoint(checkpoint(24));
  const auto rewritten = [&](auto&& change) {
    CheckpointManifest manifest = saved.manifest;
    manifest.instruction_set = "an older one";
    for (CheckpointPlugin& plugin : manifest.plugins) {
      if (plugin.section == "optimizer.matrices") change(plugin);
    }
    return write_checkpoint(tiny().next_directory(), manifest, saved.tensors.tensors()).string();
  };
  const std::string other_state = rewritten([](CheckpointPlugin& plugin) { plugin.state_version += 1; });
  const auto [code, sentence] = refusal(tiny().next_directory(), everything(), other_state);
  EXPECT_TRUE(contains(sentence, "[optimizer.matrices]", "state version"));
  EXPECT_EQ(code, ExitCode::bad_configuration);
  const std::string copy = tiny().next_directory();
  tiny().train_in(copy, everything(), rewritten([](CheckpointPlugin& plugin) { plugin.sha256 = "other"; }));
  const std::string log = read_file(fs::path(copy) / "log.txt"),
                    cpu = "warning: the checkpoint was written on a CPU with an older one, this one has";
  EXPECT_TRUE(contains(log, "warning: [optimizer.matrices]", cpu));
  EXPECT_EQ(log.find(cpu), log.rfind(cpu));
}

// A longer run of a finished one; its train_loss_hf is the losses of 3 steps over 27, and given on request alone.
TEST_F(Resume, ALongerRunAndTheHfFigure) {
  const std::string copy = tiny().next_directory();
  const Overrides longer = with(everything(), {"train.steps=27", "metrics.hf_compat=true"});
  const RunResult result = tiny().train_in(copy, longer, checkpoint(24));
  EXPECT_TRUE(contains(read_file(fs::path(copy) / "log.txt"), "warning: train.steps was 24 and is now 27"));
  EXPECT_EQ(result.step_loss_nats.size(), 3u);
  const Json loss = result_of(copy).at("train_loss");
  double sum = 0;
  for (const double step : result.step_loss_nats) sum += step;
  EXPECT_NEAR(loss.at("train_loss_hf").get<double>(), sum / 27, 1e-12);
  EXPECT_EQ(loss.at("steps_counted"), 27);
  EXPECT_TRUE(events_of(copy, "step").back().contains("train_loss_hf"));
  EXPECT_FALSE(events_of(directory_, "step").back().contains("train_loss_hf"));
  EXPECT_FALSE(contains(read_file(fs::path(directory_) / "result.json"), "train_loss_hf"));
}

// A wall-clock budget goes on with the seconds spent. Steps end both runs long before the budget: how fast
// the machine is makes no difference.
TEST_F(Resume, ATimeBudgetGoesOnWithTheSecondsSpent) {
  const std::string first = tiny().next_directory(), second = tiny().next_directory();
  const Overrides timed = {"train.budget_seconds=10000", "checkpoint.every_steps=4", "train.log_every=1"};
  tiny().train_in(first, with(timed, {"train.steps=4"}));
  const auto entries = list_checkpoints(fs::path(first) / "checkpoints");
  ASSERT_FALSE(entries.empty());
  const std::string saved = entries.back().path.string();
  const double spent = open_checkpoint(saved).manifest.progress.elapsed_seconds;
  ASSERT_GT(spent, 0.0);
  EXPECT_EQ(tiny().train_in(second, with(timed, {"train.steps=5"}), saved).first_step, 4);
  const auto step = events_of(second, "step").front();
  EXPECT_GE(step.at("budget_fraction").get<double>(), spent / 10000);
  EXPECT_GT(step.at("elapsed_seconds").get<double>(), spent);
}

// Ranks that fail when a run has made so many steps.
class FailingGroup final : public HostGroup {
 public:
  explicit FailingGroup(int steps) : steps_(steps) {}
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::string call(std::string_view name, std::string_view bytes, const Answer& answer) override {
    if (name == "consult" && asked_++ == steps_) throw run_error("the cable was pulled.");
    return self_->call(name, bytes, answer);
  }
  void put(const std::string& key, std::string_view value) override { self_->put(key, value); }
  std::string get(const std::string& key, double seconds) override { return self_->get(key, seconds); }

 private:
  std::unique_ptr<HostGroup> self_ = make_single_group();
  int steps_, asked_ = 0;
};

TEST_F(Resume, AFailureInMidTrainingSavesTheLastWholeStep) {
  const std::string straight = tiny().next_directory(), directory = tiny().next_directory();
  const Overrides short_run = with(everything(), {"train.steps=12", "checkpoint.every_seconds=0"});
  const RunResult whole = tiny().train_in(straight, short_run);
  LoadedConfig loaded = tiny().config(with(short_run, {"run.directory=" + directory}));
  resolve_run_plugins(loaded, test_plugin_host());
  TrainOptions options;
  options.console = nullptr;
  RunRanks ranks(std::make_unique<FailingGroup>(7));
  const std::string sentence = sentence_of(
      ExitCode::run_failed, [&] { Trainer(loaded, test_plugin_host(), ranks, options, {}).run(); });
  EXPECT_TRUE(
      sentence.starts_with("the cable was pulled; training has stopped after step 7, the checkpoint is '"))
      << sentence;
  ASSERT_EQ(list_checkpoints(fs::path(directory) / "checkpoints").size(), 1u);
  const RunResult resumed = tiny().train_in(directory, short_run, "auto");
  EXPECT_EQ(resumed.first_step, 7);
  EXPECT_EQ(resumed.final_loss_nats, whole.final_loss_nats);
  EXPECT_EQ(resumed.validation->loss_sum_nats, whole.validation->loss_sum_nats);
}

TEST_F(Resume, ALossThatIsNotFiniteNamesTensorAndCheckpoint) {
  const std::string directory = tiny().next_directory();
  const auto [code, sentence] = refusal(
      directory, {"optimizer.matrices.plugin=sgd", "optimizer.matrices.lr=1e6", "optimizer.rest.lr=1e6",
                  "train.clip_norm=0.0", "train.steps=40", "train.log_every=40", "checkpoint.every_steps=1"});
  EXPECT_EQ(code, ExitCode::run_failed);
  EXPECT_TRUE(contains(sentence, "the first tensor that is not finite is '", "the last good checkpoint is '",
                       "step "));
  for (const char* name : {"result.json", "weights.safetensors"})
    EXPECT_FALSE(fs::exists(fs::path(directory) / name)) << name;
}

TEST_F(Resume, AFolderThatCannotBeWrittenIsNamed) {
  EXPECT_TRUE(contains(refusal("/proc/mulligan_run", everything()).second, "'/proc/mulligan_run'"));
  const auto [code, sentence] = refusal(
      tiny().next_directory(),
      with(everything(), {"checkpoint.directory=/proc/mulligan_checkpoints", "checkpoint.every_steps=1"}));
  EXPECT_TRUE(contains(sentence, "/proc/mulligan_checkpoints"));
  EXPECT_EQ(code, ExitCode::run_failed);
}

// determinism = "run": the same run twice, and with any number of threads, losses and weights bit for bit.
TEST(Determinism, RepetitionsAndThreadCountsGiveTheSameBits) {
  const Overrides run = with(everything(), {"run.determinism=run", "train.steps=8"});
  const std::string first = tiny().next_directory();
  const RunResult expected = tiny().train_in(first, with(run, {"run.threads=2"}));
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(threads);
    const std::string directory = tiny().next_directory();
    const RunResult result =
        tiny().train_in(directory, with(run, {"run.threads=" + std::to_string(threads)}));
    expect_same_run(first, expected, directory, result);
  }
}

// Ranks: engine_ranks_test.cpp.
TEST(Determinism, AWorldDoesNotDependOnThreads) {
  const auto weights = [](const char* threads) {
    const Overrides world = {"run.determinism=world", "train.micro_batches=2", "train.steps=6", threads};
    return result_of(tiny().train(world).directory).at("weights_sha256");
  };
  EXPECT_EQ(weights("run.threads=1"), weights("run.threads=2"));
}

}  // namespace
}  // namespace mulligan::end_to_end::resume_test
