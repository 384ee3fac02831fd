// The doctor has nothing to say of healthy runs: of every feature of the model, dtype, optimiser and
// schedule. And what a run keeps of its findings.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/planted_faults/watched_run.h"

namespace mulligan::doctor::doctor_healthy_test {
namespace {

using end_to_end::Overrides;

struct Variant {
  const char* what;
  Overrides overrides;
};

const std::vector<Variant> variants = {
    {"as it is", {}},
    {"bf16", {"train.compute_dtype=bf16"}},
    {"plain calls", {"run.fused_kernels=false"}},
    {"no softcap", {"model.softcap=0", "loss.plugin=cross_entropy"}},
    {"a head of its own", {"model.tied_head=false"}},
    {"no recurrence", {"model.loop.extra_passes=0"}},
    {"one stream", {"model.lanes.parallel_start=0"}},
    {"plain attention",
     {"model.attention_gate=false", "model.xsa_last_layers=0", "model.qk_norm=false", "model.q_gain=0"}},
    {"no skip connections",
     {"model.skip_weights=false", "model.skip_gates=false", "model.residual_mix=false"}},
    {"all dimensions rotated, bf16 tables", {"model.rope.dims=8", "model.rope.table=bf16"}},
    {"averages and cosine", {"ema.decay=0.9", "schedule.plugin=cosine"}},
    {"warm restarts", {"schedule.plugin=sgdr", "schedule.period=3"}},
    {"two micro-batches, sliding windows", {"train.micro_batches=2", "eval.mode=sliding", "eval.stride=16"}},
    {"wide initial embedding", {"model.embedding_init_std=0.02"}},
};

TEST(DoctorOfHealthyRuns, NothingToSay) {
  for (const Variant& variant : variants) {
    for (const Finding& f : findings_of(tiny().config(variant.overrides))) {
      EXPECT_EQ(f.verdict, CheckOutcome::pass)
          << variant.what << ": " << f.id << " " << f.title << ": " << f.measured << " " << f.message;
      EXPECT_FALSE(f.measured.empty()) << f.id;
    }
  }
}

// Every call of a forward pass of plain calls is compared: no kernel is passed over in silence.
TEST(DoctorOfHealthyRuns, EveryPlainCallIsCompared) {
  const std::vector<Finding> findings = findings_of(tiny().config({"run.fused_kernels=false"}), {"forward"});
  const auto found = std::ranges::find_if(findings, [](const Finding& f) {
    return f.title == "operations of the forward pass against the cpu backend";
  });
  ASSERT_TRUE(found != findings.end());
  int compared = 0, calls = 0;
  ASSERT_EQ(std::sscanf(found->measured.c_str(), "%d of %d calls", &compared, &calls), 2) << found->measured;
  EXPECT_EQ(compared, calls);
  EXPECT_GT(calls, 40);
}

// A run with the checks computes what one without them does, and keeps the findings.
TEST(DoctorOfHealthyRuns, ARunIsTheSameWithAndWithout) {
  const RunResult without = tiny().train({"train.steps=6", "doctor.level=off"});
  const RunResult with = tiny().train({"train.steps=6", "doctor.level=start"});
  EXPECT_EQ(without.step_loss_nats, with.step_loss_nats);
  EXPECT_EQ(without.validation->loss_sum_nats, with.validation->loss_sum_nats);
  EXPECT_EQ(without.peak_device_memory_bytes, with.peak_device_memory_bytes);
  const auto json = end_to_end::result_of(with.directory).at("doctor");
  EXPECT_EQ(json.at("level"), "start");
  EXPECT_EQ(json.at("verdict"), "PASS");
  EXPECT_EQ(json.at("forced"), false);
  std::set<std::string> ids;
  for (const auto& finding : json.at("findings")) ids.insert(finding.at("id"));
  EXPECT_EQ(
      ids, (std::set<std::string>{"D01", "D02", "D05", "D06", "D07", "D09", "D16", "D17", "D19", "D20", "D21",
                                  "D22", "D23", "D26", "D27", "D28", "D36", "D37", "D38", "D39", "D41"}));
  const auto off = end_to_end::result_of(without.directory).at("doctor");
  EXPECT_EQ(off.at("level"), "off");
  EXPECT_TRUE(off.at("findings").empty());
}

// D09 is of weights that know nothing: a run that goes on has learned.
TEST(DoctorOfHealthyRuns, AResumedRunIsNotHeldAgainstChance) {
  const std::string directory = tiny().next_directory();
  tiny().train_in(directory, {"train.steps=4", "doctor.level=start"});
  const RunResult result = tiny().train_in(directory, {"train.steps=6", "doctor.level=start"}, "auto");
  EXPECT_EQ(result.first_step, 4);
  const auto record = end_to_end::result_of(directory);
  ASSERT_GT(record.at("doctor").at("findings").size(), 10U);
  for (const auto& finding : record.at("doctor").at("findings")) EXPECT_NE(finding.at("id"), "D09");
}

}  // namespace
}  // namespace mulligan::doctor::doctor_healthy_test
