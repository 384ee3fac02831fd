// Training in phases: precision, segment length, layer order and backend change on the way; a checkpoint of any phase
// continues to the same bits; the report shows them.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/report_page/write_report.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/long_tests.h"
#include "tests/support/plugins.h"
#include "tests/support/test_device.h"

namespace mulligan::end_to_end {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Overrides = std::vector<std::string>;

TinyRun& tiny() {
  static TinyRun run;
  return run;
}

// fp32 -> bf16 at a step, segments of 32 -> 64 tokens at a share of the budget, plain -> looped with that.
constexpr const char* kThree = R"(
[[phase]]
name = "short"
until_steps = 4
layer_order = "plain"
compute_dtype = "fp32"
sequence_length = 32
[[phase]]
name = "half"
until_fraction = 0.7
layer_order = "plain"
compute_dtype = "bf16"
sequence_length = 32
[[phase]]
name = "long"
layer_order = "looped"
compute_dtype = "bf16"
sequence_length = 64
)";

// The tiny run with these rows, in a file of its own.
RunResult train(const std::string& rows, Overrides overrides, const std::string& directory,
                const std::string& resume = "", TinyRun& of = tiny()) {
  overrides.insert(overrides.end(), {"model.loop.start_fraction=0.0", "run.directory=" + directory});
  const std::string file = directory + ".toml";
  write_file_atomically(file, print_resolved(of.config(overrides)) + rows);
  LoadedConfig loaded = load_run_config(file);
  TrainOptions options;
  options.console = nullptr;
  options.resume = resume;
  return mulligan::train(loaded, test_plugin_host(), options);
}

std::vector<Json> events(const fs::path& directory, const std::string& kind) {
  std::vector<Json> found;
  for (const std::string& line : lines_of(directory / "metrics.jsonl")) {
    Json event = Json::parse(line);
    if (event.at("event") == kind) found.push_back(std::move(event));
  }
  return found;
}

const Overrides kSteps = {"train.steps=12",           "train.log_every=1",  "train.warmup.steps=1",
                          "checkpoint.every_steps=1", "checkpoint.keep=20", "ema.decay=0.9",
                          "train.validate_every=1"};

TEST(TrainingPhases, PrecisionLengthAndOrderChangeAndEachPhaseResumes) {
  const std::string whole = tiny().next_directory();
  const RunResult result = train(kThree, kSteps, whole);
  const std::vector<Json> starts = events(whole, "phase_start");
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[0].at("phase"), "short");
  EXPECT_EQ(starts[1].at("step"), 4);
  EXPECT_EQ(starts[1].at("way"), "plain, bf16, segments of 32 tokens");
  EXPECT_EQ(starts[2].at("step"), 9) << "the first step that finds 0.7 of 12 steps done";
  EXPECT_EQ(starts[2].at("way"), "looped, bf16, segments of 64 tokens");
  for (const Json& step : events(whole, "step")) {
    const int number = step.at("step");
    EXPECT_EQ(step.at("phase"), number <= 4 ? "short" : number <= 9 ? "half" : "long") << step.dump();
  }
  const Json booked =
      Json::parse(read_file(fs::path(whole) / "result.json"))["train_loss"]["train_loss_phase_nats"];
  EXPECT_EQ(booked.at("short").at("steps_counted"), 4);
  EXPECT_EQ(booked.at("half").at("steps_counted"), 5);
  EXPECT_EQ(booked.at("long").at("steps_counted"), 3);

  // A checkpoint that is due while one is being written is left out, so which there are is not known.
  std::set<std::string> resumed;
  for (const CheckpointEntry& saved : list_checkpoints((fs::path(whole) / "checkpoints").string())) {
    const auto step = saved.step;
    if (step == 12) continue;
    SCOPED_TRACE(step);
    resumed.insert(step <= 4 ? "short" : step <= 9 ? "half" : "long");
    const std::string copy = tiny().next_directory();
    fs::create_directories(fs::path(copy) / "checkpoints");
    fs::copy(saved.path, fs::path(copy) / "checkpoints" / saved.path.filename(), fs::copy_options::recursive);
    const RunResult again = train(kThree, kSteps, copy, "auto");
    EXPECT_EQ(again.first_step, step);
    EXPECT_EQ(again.final_loss_nats, result.final_loss_nats);
    ASSERT_TRUE(again.validation && result.validation);
    EXPECT_EQ(again.validation->val_bpb, result.validation->val_bpb);
    const auto weights = [](const std::string& run) {
      return Json::parse(read_file(fs::path(run) / "result.json")).at("weights_sha256");
    };
    EXPECT_EQ(weights(copy), weights(whole));
  }
  EXPECT_EQ(resumed, (std::set<std::string>{"short", "half", "long"}));

  report::write_report(whole);
  const std::string page = read_file(fs::path(whole) / "report.html");
  for (const char* text :
       {"phase half", "plain, bf16, segments of 32 tokens", "looped, bf16, segments of 64 tokens"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

// Phases that change nothing are the run without them, to the bit.
TEST(TrainingPhases, PhasesThatSayTheSameChangeNothing) {
  const std::string plain = tiny().next_directory(), cut = tiny().next_directory();
  const RunResult expected = train("", kSteps, plain);
  const RunResult result =
      train("[[phase]]\nuntil_steps = 3\n[[phase]]\nuntil_fraction = 0.5\n[[phase]]\n", kSteps, cut);
  EXPECT_EQ(result.step_loss_nats, expected.step_loss_nats);
  EXPECT_EQ(result.validation->val_bpb, expected.validation->val_bpb);
}

TEST(TrainingPhases, AFactorOnRatesHoldsInItsPhase) {
  const std::string directory = tiny().next_directory();
  train("[[phase]]\nuntil_steps = 3\nlr_multiplier = 0.25\n[[phase]]\n",
        {"train.steps=6", "train.log_every=1", "schedule.plugin=constant"}, directory);
  const std::vector<Json> steps = events(directory, "step");
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_DOUBLE_EQ(steps[2].at("lr").at("rest").get<double>(),
                   0.25 * steps[3].at("lr").at("rest").get<double>());
}

TEST(TrainingPhases, AnotherPhaseThanTheSavedOneIsRefused) {
  const std::string directory = tiny().next_directory();
  train(kThree, kSteps, directory);
  fs::remove(fs::path(directory) / "result.json");
  std::string renamed = kThree;
  renamed.replace(renamed.find("\"long\""), 6, "\"wide\"");
  try {
    train(renamed, kSteps, directory, "auto");
    ADD_FAILURE() << "resumed in another phase";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_configuration);
    EXPECT_NE(std::string(error.what()).find("phase.2.name"), std::string::npos) << error.what();
  }
}

// The cuda backend takes over in mid-run: the state arrives as it left, the loss of one row agrees, and the steps after
// are those of a run on the cpu backend alone, but for the order of sums.
TEST(TrainingPhases, AnotherBackendTakesOver) {
  const Overrides steps = {"train.steps=8", "train.log_every=1", "train.tokens_per_step=128",
                           "checkpoint.every_steps=6", "train.validate_every=4"};
  const std::string rows =
      "[[phase]]\nname = \"processor\"\nuntil_steps = 4\n[[phase]]\nname = \"device\"\n"
      "[phase.backend]\nplugin = \"cuda\"\ndevice = \"" +
      test_device() + "\"\n";
  TinyRun few(long_tests() ? 20 : 2);  // the emulated device scores them several times
  const std::string mixed = few.next_directory(), alone = few.next_directory();
  const RunResult expected = train("", steps, alone, "", few);
  const RunResult result = train(rows, steps, mixed, "", few);
  ASSERT_EQ(result.step_loss_nats.size(), 8u);
  for (std::size_t step = 0; step < 8; ++step) {
    const double loss = expected.step_loss_nats[step];
    EXPECT_NEAR(result.step_loss_nats[step], loss, step < 4 ? 0 : 2e-4 * loss) << step;
  }
  EXPECT_NEAR(result.validation->val_bpb, expected.validation->val_bpb, 1e-3);
  const std::vector<Json> starts = events(mixed, "phase_start");
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[1].at("state_sha256").get<std::string>().size(), 64u);
  const Json probe = starts[1].at("probe_loss_nats");
  EXPECT_NEAR(probe.at(1).get<double>(), probe.at(0).get<double>(), 2e-6 * probe.at(0).get<double>());

  // A checkpoint of the second phase continues on the second backend.
  fs::remove(fs::path(mixed) / "result.json");
  fs::remove_all(fs::path(mixed) / "checkpoints/step_00000008");
  const RunResult again = train(rows, steps, mixed, "auto", few);
  EXPECT_EQ(again.first_step, 6);
  EXPECT_EQ(again.final_loss_nats, result.final_loss_nats);
}

}  // namespace
}  // namespace mulligan::end_to_end
