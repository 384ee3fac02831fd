// What the plan of a run says of memory, against what the backend allocated when the run was made: the cpu
// backend and the emulated GPU. Both count what allocate() gives.
#include <gtest/gtest.h>

#include "tests/end_to_end/tiny_ttt.h"
#include "tests/support/plugins.h"
#include "tools/cost/dry_run.h"

namespace mulligan::end_to_end::memory_test {
namespace {

// Everything that takes memory: averages, both layer orders, the momentum of a warm-up, an evaluation.
const Overrides kTraining = {"train.steps=2", "train.tokens_per_step=128", "train.warmup.steps=1",
                             "ema.decay=0.9", "train.compute_dtype=bf16"};
const Overrides kTtt =
    with(ttt_keys, {"train.tokens_per_step=128", "ttt.batch_documents=3", "ttt.context_tokens=64",
                    "ttt.chunk_tokens=16", "ttt.prefix_documents=3", "ttt.document_fraction=0.2"});

TEST(PlannedMemory, OfTrainingIsWhatARunTakes) {
  LoadedConfig loaded = tiny().config(kTraining);
  const DryRun plan = dry_run(loaded, test_plugin_host());
  ASSERT_TRUE(plan.workspace_bytes.has_value()) << plan.workspace_note;
  const RunResult run = tiny().train(kTraining);
  EXPECT_GT(run.peak_device_memory_bytes, 1'000'000);
  EXPECT_EQ(plan.bytes, run.peak_device_memory_bytes);
}

TEST(PlannedMemory, OfTestTimeTrainingIsWhatARunTakes) {
  LoadedConfig planned = tiny().config(kTtt);
  const TttMemory plan = plan_ttt_memory(planned, test_plugin_host());
  ASSERT_TRUE(plan.workspace_bytes.has_value());
  const TttResult run = adapt(tiny().config(kTtt), tiny().train(kTraining).directory / "weights.safetensors");
  EXPECT_GT(run.peak_device_memory_bytes, 500'000);
  EXPECT_EQ(plan.bytes, run.peak_device_memory_bytes);
}

TEST(PlannedMemory, OfTestTimeTrainingWithoutDataIsThatOfTheLargestBatches) {
  LoadedConfig loaded = tiny().config(with(kTtt, {"data.validation=''"}));
  const TttMemory plan = plan_ttt_memory(loaded, test_plugin_host());
  EXPECT_NE(plan.documents.find("5 documents of 65 tokens"), std::string::npos) << plan.documents;
  // Two sets of adapters with two moments each and where A began: of three documents, and of two.
  const std::int64_t rank = 4, width = 32, kv = 16, slots = 6, vocabulary = 320;
  const std::int64_t a = rank * width * (5 * slots + 1);
  const std::int64_t b = rank * ((3 * width + 2 * kv) * slots + vocabulary);
  std::int64_t adapters = 0;
  for (const MemoryRow& row : plan.rows) {
    if (row.what == "adapters and their optimiser's state") adapters = row.bytes;
  }
  EXPECT_NEAR(static_cast<double>(adapters), 4.0 * (3 + 2) * static_cast<double>(4 * a + 3 * b),
              0.01 * static_cast<double>(adapters));
}

}  // namespace
}  // namespace mulligan::end_to_end::memory_test
