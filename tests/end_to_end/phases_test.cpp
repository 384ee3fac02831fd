// Training in phases: precision, segment length, layer order and backend change on the way; a checkpoint of
// any phase continues to the same bits; the report shows them.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/config/config_report.h"
#include "framework/core/file.h"
#include "tests/end_to_end/rank_engines.h"
#include "tests/support/long_tests.h"
#include "tests/support/sentence.h"
#include "tests/support/test_device.h"
#include "tools/report_page/write_report.h"

namespace mulligan::end_to_end::phases_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

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
  return train_loaded(loaded, resume);
}

const Overrides kSteps = {"train.steps=12",     "train.log_every=1", "train.warmup.steps=1",
                          "checkpoint.keep=20", "ema.decay=0.9",     "train.validate_every=1"};

// The directory of a run that holds only the checkpoint of `step`. Each step has a run of its own: a checkpoint that is due
// while another is being written is left out, so "every step" would name no step for certain.
std::string stopped_at(int step, const std::string& rows, const Overrides& settings) {
  Overrides saving = settings;
  saving.push_back("checkpoint.every_steps=" + std::to_string(step));
  const std::string first = tiny().next_directory();
  train(rows, saving, first);
  return only_checkpoint(tiny(), first, step);
}

TEST(TrainingPhases, PrecisionLengthAndOrderChangeAndEachPhaseResumes) {
  const std::string whole = tiny().next_directory();
  const RunResult result = train(kThree, kSteps, whole);
  const std::vector<Json> starts = events_of(whole, "phase_start");
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[0].at("phase"), "short");
  EXPECT_EQ(starts[1].at("step"), 4);
  EXPECT_EQ(starts[1].at("way"), "plain, bf16, segments of 32 tokens");
  EXPECT_EQ(starts[2].at("step"), 9) << "the first step that finds 0.7 of 12 steps done";
  EXPECT_EQ(starts[2].at("way"), "looped, bf16, segments of 64 tokens");
  for (const Json& step : events_of(whole, "step")) {
    const int number = step.at("step");
    EXPECT_EQ(step.at("phase"), number <= 4 ? "short" : number <= 9 ? "half" : "long") << step.dump();
  }
  const Json booked = result_of(whole)["train_loss"]["train_loss_phase_nats"];
  EXPECT_EQ(booked.at("short").at("steps_counted"), 4);
  EXPECT_EQ(booked.at("half").at("steps_counted"), 5);
  EXPECT_EQ(booked.at("long").at("steps_counted"), 3);

  for (const int step : {1, 4, 7, 9, 11}) {
    SCOPED_TRACE(step);
    const std::string copy = stopped_at(step, kThree, kSteps);
    const RunResult again = train(kThree, kSteps, copy, "auto");
    EXPECT_EQ(again.first_step, step);
    EXPECT_EQ(again.final_loss_nats, result.final_loss_nats);
    ASSERT_TRUE(again.validation && result.validation);
    EXPECT_EQ(again.validation->val_bpb, result.validation->val_bpb);
    EXPECT_EQ(result_of(copy).at("weights_sha256"), result_of(whole).at("weights_sha256"));
  }

  report::write_report(whole);
  const std::string page = read_file(fs::path(whole) / "report.html");
  for (const char* text :
       {"phase half", "plain, bf16, segments of 32 tokens", "looped, bf16, segments of 64 tokens"})
    EXPECT_TRUE(contains(page, text)) << text;
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
  const std::vector<Json> steps = events_of(directory, "step");
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_DOUBLE_EQ(steps[2].at("lr").at("rest").get<double>(),
                   0.25 * steps[3].at("lr").at("rest").get<double>());
}

// A later record's length schedule. After a change of length all rates grow anew, also over the start of the
// loop, and the batches that its loader has prepared are lost. A checkpoint within resumes bit for bit.
TEST(TrainingPhases, ANewLengthWarmsUpAgainAndSkipsBatches) {
  const auto rows = [](int rewarm, int skip) {
    return fmt::format(R"(
[[phase]]
name = "short"
through_fraction = 0.25
layer_order = "plain"
sequence_length = 32
[[phase]]
name = "long"
until_fraction = 0.5
layer_order = "plain"
sequence_length = 64
rewarm_steps = {}
skip_batches = {}
[[phase]]
name = "looped"
layer_order = "looped"
sequence_length = 64
)",
                       rewarm, skip);
  };
  const std::string whole = tiny().next_directory(), plain = tiny().next_directory();
  const RunResult result = train(rows(5, 2), kSteps, whole);
  train(rows(0, 0), kSteps, plain);
  const std::vector<Json> with = events_of(whole, "step"), without = events_of(plain, "step");
  ASSERT_EQ(with.size(), 12u);
  // 3 of 12 steps done are a quarter, at which the first phase still holds; the loop starts at 6 of 12.
  const std::vector<double> factors = {1, 1, 1, 1, 0.2, 0.4, 0.6, 0.8, 1, 1, 1, 1};
  for (std::size_t i = 0; i < with.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(with[i].at("phase"), i < 4 ? "short" : i < 6 ? "long" : "looped");
    for (const auto& [group, rate] : with[i].at("lr").items())
      EXPECT_DOUBLE_EQ(rate.get<double>(), factors[i] * without[i].at("lr").at(group).get<double>()) << group;
  }
  // Two batches of one span each are not read.
  const auto position = [](const std::string& run, int step) {
    for (const CheckpointEntry& saved : list_checkpoints((fs::path(run) / "checkpoints").string())) {
      if (saved.step == step)
        return Json::parse(read_file(saved.path / "manifest.json"))
            .at("data")
            .at("consumed_spans")
            .get<std::int64_t>();
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(position(whole, 12), position(plain, 12) + 2 * position(plain, 12) / 12);

  for (const int step : {5, 7}) {  // before and after the start of the loop
    SCOPED_TRACE(step);
    const RunResult again = train(rows(5, 2), kSteps, stopped_at(step, rows(5, 2), kSteps), "auto");
    EXPECT_EQ(again.first_step, step);
    EXPECT_EQ(again.final_loss_nats, result.final_loss_nats);
    EXPECT_EQ(again.validation->val_bpb, result.validation->val_bpb);
  }
}

TEST(TrainingPhases, AnotherPhaseThanTheSavedOneIsRefused) {
  const std::string directory = tiny().next_directory();
  train(kThree, kSteps, directory);
  fs::remove(fs::path(directory) / "result.json");
  std::string renamed = kThree;
  renamed.replace(renamed.find("\"long\""), 6, "\"wide\"");
  const std::string sentence =
      sentence_of(ExitCode::bad_configuration, [&] { train(renamed, kSteps, directory, "auto"); });
  EXPECT_TRUE(contains(sentence, "phase.2.name"));
}

// The cuda backend takes over in the middle of a run. The state arrives unchanged and the loss of one row agrees. The steps after
// that are those of a run on the cpu backend alone, except for the order of sums.
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
  const std::vector<Json> switches = events_of(mixed, "phase_switch");
  ASSERT_EQ(switches.size(), 1u);
  EXPECT_EQ(switches[0].at("state_sha256").get<std::string>().size(), 64u);
  EXPECT_EQ(switches[0].at("probe_tolerance_nats"), 1e-4);
  const Json probe = switches[0].at("probe_loss_nats");
  EXPECT_NEAR(probe.at(1).get<double>(), probe.at(0).get<double>(), 2e-6 * probe.at(0).get<double>());

  // A checkpoint of the second phase continues on the second backend.
  fs::remove(fs::path(mixed) / "result.json");
  fs::remove_all(fs::path(mixed) / "checkpoints/step_00000008");
  const RunResult again = train(rows, steps, mixed, "auto", few);
  EXPECT_EQ(again.first_step, 6);
  EXPECT_EQ(again.final_loss_nats, result.final_loss_nats);
}

const Overrides kShort = {"train.steps=12", "train.log_every=1", "train.warmup.steps=1"};

TEST(TrainingPhases, ASwitchIsVerifiedAndTold) {
  const std::string directory = tiny().next_directory();
  train(kThree, kShort, directory);
  const std::vector<Json> switches = events_of(directory, "phase_switch");
  ASSERT_EQ(switches.size(), 2u);
  const Json& rounded = switches[0];
  EXPECT_EQ(rounded.at("step"), 4);
  EXPECT_EQ(rounded.at("from"), "short");
  EXPECT_EQ(rounded.at("to"), "half");
  EXPECT_EQ(rounded.at("lr_before"), rounded.at("lr_after")) << "one constant schedule";
  EXPECT_FALSE(rounded.at("optimizer_reset").get<bool>());
  EXPECT_EQ(rounded.at("state_sha256").get<std::string>().size(), 64u);
  EXPECT_EQ(rounded.at("probe_tolerance_nats"), 2e-2);
  const double delta = rounded.at("probe_delta_nats");
  EXPECT_NE(delta, 0) << "bf16 computes otherwise than fp32";
  EXPECT_LT(std::abs(delta), 2e-2);
  EXPECT_FALSE(switches[1].contains("probe_tolerance_nats")) << "another layer order computes something else";
  EXPECT_NE(switches[1].at("state_sha256"), rounded.at("state_sha256"));
  report::write_report(directory);
  const std::string page = read_file(fs::path(directory) / "report.html");
  EXPECT_TRUE(contains(page, "short to half"));
  EXPECT_TRUE(contains(page, rounded.at("state_sha256").get<std::string>().substr(0, 12)));
}

double rate(const Json& step) {
  return step.at("lr").at("rest").get<double>();
}

// The schedules of the three policies on a cosine over 12 steps, switched after 4: base rate 0.01.
TEST(TrainingPhases, EachPolicyHasItsSchedule) {
  const auto cosine = [](int step, int steps) { return 0.005 * (1 + std::cos(M_PI * step / steps)); };
  const auto rates = [&](const std::string& first, const std::string& second) {
    const std::string directory = tiny().next_directory();
    train("[[phase]]\nuntil_steps = 4\nlr_policy = \"" + first + "\"\n[[phase]]\nlr_policy = \"" + second +
              "\"\n",
          {"train.steps=12", "train.log_every=1", "schedule.plugin=cosine"}, directory);
    const Json change = events_of(directory, "phase_switch").at(0);
    std::vector<double> found;
    for (const Json& step : events_of(directory, "step")) found.push_back(rate(step));
    EXPECT_DOUBLE_EQ(change.at("lr_before").at("rest").get<double>(), found.at(3));
    EXPECT_DOUBLE_EQ(change.at("lr_after").at("rest").get<double>(), found.at(4));
    return found;
  };
  const std::vector<double> one = rates("continue", "continue"), jump = rates("independent", "rejoin"),
                            own = rates("independent", "independent");
  for (int step = 0; step < 12; ++step) {
    const auto at = static_cast<std::size_t>(step);
    EXPECT_NEAR(one.at(at), cosine(step, 12), 1e-9) << step;
    EXPECT_NEAR(jump.at(at), step < 4 ? cosine(step, 4) : cosine(step, 12), 1e-9) << step;
    EXPECT_NEAR(own.at(at), step < 4 ? cosine(step, 4) : cosine(step - 4, 8), 1e-9) << step;
  }
}

TEST(TrainingPhases, BatchAndClockChangeOnTheWay) {
  const std::string directory = tiny().next_directory();
  train(
      "[[phase]]\nuntil_seconds = 1e-9\n[[phase]]\nuntil_steps = 3\nmicro_batches = "
      "4\n[[phase]]\nmicro_batches = 1\n",
      {"train.steps=5", "train.log_every=1", "train.micro_batches=2"}, directory);
  std::vector<std::int64_t> tokens;
  for (const Json& step : events_of(directory, "step"))
    tokens.push_back(step.at("tokens").get<std::int64_t>());
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{512, 1024, 1536, 1664, 1792}));
  // Some clock time has passed before the first step is made.
  EXPECT_EQ(events_of(directory, "phase_start").at(1).at("step"), 0);
}

// An engine whose optimisers are reset makes the step that a new engine makes from the same weights.
TEST(TrainingPhases, AResetEngineIsANewOneWithItsWeights) {
  Alone old({}), fresh({});
  old.engine.step(1, *old.rows);
  old.engine.step(2, *old.rows);
  old.engine.reset_optimizers();
  std::vector<std::string> masters;
  for (const PlannedParameter& parameter : old.parameters) masters.push_back(master_name(parameter.name()));
  const StateSnapshot weights(old.engine.store(), masters);
  weights.restore_to(fresh.engine.store());
  fresh.engine.refresh_copies();
  fresh.rows->restore(old.rows->position());
  old.engine.step(1, *old.rows);
  fresh.engine.step(1, *fresh.rows);
  const auto digest = [](Rank& made, const char* counters) {
    return state_digest(made.engine.store(), made.engine.whole_state(), counters);
  };
  EXPECT_EQ(digest(old, "step 1"), digest(fresh, "step 1"));
  EXPECT_NE(digest(old, "step 1"), digest(fresh, "step 2"));
  // One bit of one tensor is another state.
  std::vector<std::byte> scale = download_bytes(fresh.engine.store(), masters.front());
  scale.front() ^= std::byte{1};
  fresh.engine.store().upload(masters.front(), std::span<const std::byte>(scale));
  EXPECT_NE(digest(old, "step 1"), digest(fresh, "step 1"));
}

// Everything new at once: a checkpoint of each phase continues to the same bits.
TEST(TrainingPhases, SchedulesNoiseMixAndResetsSurviveAResume) {
  const std::string data = (tiny().folder() / "data").string();
  const std::string rows =
      "[[data.mix]]\nname = \"most\"\ntrain = '" + data +
      "/fineweb_train_000000.bin'\nweight = 3.0\n[[data.mix]]\nname = \"rest\"\ntrain = '" + data +
      "/fineweb_train_000001.bin'\n" + R"(
[[phase]]
name = "anchor"
until_steps = 4
lr_policy = "independent"
noise = "relative"
[[phase]]
name = "wide"
until_fraction = 0.7
lr_policy = "independent"
micro_batches = 4
reset_optimizer = true
mix_weights = [1.0, 1.0]
noise = "norm"
noise_factor = 10.0
[[phase]]
name = "end"
lr_policy = "rejoin"
)";
  const Overrides settings = {"train.steps=12",         "train.log_every=1",  "train.micro_batches=2",
                              "schedule.plugin=cosine", "checkpoint.keep=20", "train.validate_every=1",
                              "data.train=''"};
  const std::string whole = tiny().next_directory();
  const RunResult result = train(rows, settings, whole);
  const std::vector<Json> steps = events_of(whole, "step");
  ASSERT_EQ(steps.size(), 12u);
  // 4 steps of two spans at 3 : 1, then of four at 1 : 1 (no debt of before), then of two at 3 : 1 anew.
  EXPECT_DOUBLE_EQ(steps[3].at("mix_share").at("most").get<double>(), 0.75);
  EXPECT_DOUBLE_EQ(steps[8].at("mix_share").at("most").get<double>(), (6.0 + 10.0) / 28.0);
  EXPECT_NEAR(steps[0].at("noise_ratio").get<double>(), 0.00166, 0.0004);
  EXPECT_NEAR(steps[5].at("noise_ratio").get<double>(), 0.0166, 0.004);
  EXPECT_FALSE(steps[11].contains("noise_ratio"));
  EXPECT_TRUE(events_of(whole, "phase_switch").at(0).at("optimizer_reset").get<bool>());

  for (const int step : {3, 7, 11}) {  // one of each phase
    SCOPED_TRACE(step);
    const std::string copy = stopped_at(step, rows, settings);
    const RunResult again = train(rows, settings, copy, "auto");
    EXPECT_EQ(again.first_step, step);
    for (const char* key : {"weights_sha256", "train_loss"})
      EXPECT_EQ(result_of(copy).at(key), result_of(whole).at(key)) << key;
    EXPECT_EQ(again.validation->val_bpb, result.validation->val_bpb);
  }
}

}  // namespace
}  // namespace mulligan::end_to_end::phases_test
