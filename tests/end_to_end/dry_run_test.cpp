// The plan of a run: what the record's configuration needs, without data and without a GPU.
#include "tools/cost/dry_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "framework/run/device_plan.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_plugins.h"
#include "framework/ttt/ttt_inputs.h"
#include "tests/support/plugins.h"

namespace mulligan::end_to_end::dry_run_test {
namespace {

LoadedConfig record_with(const std::vector<std::string>& sets) {
  return load_run_config(std::string(MULLIGAN_SOURCE_DIR) + "/configs/records/pr1886.toml", sets);
}

// Without joined parameters, since a sum in a test does not know their padding.
LoadedConfig record() {
  return record_with({"run.fused_kernels=false"});
}

std::int64_t bytes_of(const std::vector<MemoryRow>& rows, const std::string& what) {
  for (const MemoryRow& row : rows) {
    if (row.what == what) return row.bytes;
  }
  return -1;
}

TEST(DryRun, TheRecordsModelHasItsPublishedNumberOfParameters) {
  LoadedConfig loaded = record();
  const DryRun plan = dry_run(loaded, test_plugin_host());
  EXPECT_EQ(plan.parameters, 35'989'658);
  std::int64_t sum = 0;
  std::map<std::string, std::int64_t> by_plugin;
  for (const PlannedParameter& tensor : plan.tensors) {
    const std::int64_t elements = tensor.layout.spec.type.elements();
    sum += elements;
    by_plugin[loaded.config.optimizers[tensor.optimizer].table.plugin] += elements;
  }
  EXPECT_EQ(sum, plan.parameters);
  const std::int64_t banks = 22 * 512 * 512 + 22 * 256 * 512 + 2 * 11 * 2048 * 512;
  EXPECT_EQ(by_plugin["muon"], banks);
  EXPECT_EQ(by_plugin["adamw"], plan.parameters - banks);
  EXPECT_NE(format_dry_run(loaded.config, {}, plan).find("35,989,658"), std::string::npos);
}

TEST(DryRun, MemoryOfTheRecordAddsUpByHand) {
  LoadedConfig loaded = record();
  const DryRun plan = dry_run(loaded, test_plugin_host());
  const std::int64_t embedding = 8192 * 512;
  const std::int64_t banks = 22 * 512 * 512 + 22 * 256 * 512 + 2 * 11 * 2048 * 512;
  const std::int64_t gates = 11 * 8 * 512;
  const std::int64_t rest = plan.parameters - embedding - banks;
  EXPECT_EQ(bytes_of(plan.rows, "master weights"), 2 * embedding + 4 * (banks + rest));
  EXPECT_EQ(bytes_of(plan.rows, "compute copies"), 2 * (banks + gates));
  EXPECT_EQ(bytes_of(plan.rows, "gradients"), 4 * plan.parameters);
  // Muon: one bf16 buffer; AdamW: two moments, bf16 for the embedding.
  EXPECT_EQ(bytes_of(plan.rows, "optimiser state"), 2 * banks + 2 * 2 * embedding + 2 * 4 * rest);
  std::int64_t total = 0, largest = 0;
  for (const MemoryRow& row : plan.rows) total += row.bytes;
  for (const MemoryRow& row : plan.arenas) largest = std::max(largest, row.bytes);
  EXPECT_EQ(plan.bytes, total);
  EXPECT_EQ(bytes_of(plan.rows, "arena (activations, shared by all programs)"), largest);
}

// The published script takes 41.6 GB on an 80 GB card.
TEST(DryRun, TheRecordFitsWellBelow80GbPerRank) {
  LoadedConfig loaded = record_with({});
  DryRunOptions options;
  options.ranks = 8;
  EXPECT_LT(dry_run(loaded, test_plugin_host(), options).bytes, 38'000'000'000);
  // For the longest documents, with a tenth of the card to spare after cuDNN's and cuBLASLt's workspace (docs/cuda.md).
  EXPECT_LT(plan_ttt_memory(loaded, test_plugin_host()).bytes + 640'000'000, 72'000'000'000);
}

// A text's documents, as long as web pages are: most of some hundred tokens, some of tens of thousands.
std::vector<std::uint16_t> web_documents(int count) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> length(6.0, 1.1);
  std::vector<std::uint16_t> tokens;
  for (int document = 0; document < count; ++document) {
    tokens.push_back(1);
    const auto words = static_cast<std::size_t>(std::clamp(length(random), 8.0, 30000.0));
    tokens.insert(tokens.end(), words, 2);
  }
  return tokens;
}

// Test-time training of the record's configuration has thousands of matmul shapes. A measurement takes some 20 ms
// of a GPU and of the evaluation's 600 s.
TEST(DryRun, TheRecordsTestTimeTrainingMeasuresFewMatmuls) {
  LoadedConfig loaded = record();
  plan_on_cuda(loaded);
  resolve_run_plugins(loaded, test_plugin_host());
  const RunConfig& config = loaded.config;
  RunPlugins plugins = make_run_plugins(loaded, test_plugin_host());
  const TttPlugins rule(loaded, test_plugin_host(), plugins);
  LoadedModel model(*plugins.backend, config, base_masters(*config.ttt));
  const BaseModel base = base_model(model, config);
  const TttSetup setup = rule.setup(config);
  const std::vector<std::uint16_t> tokens = web_documents(1200);
  const TttScorer run(base, setup, {tokens, 1, nullptr, {}});
  const std::int64_t measurements = matmul_measurements(*plugins.backend, run.programs());
  EXPECT_GT(measurements, 20);
  EXPECT_LE(measurements, 200);
}

TEST(DryRun, ShardedParametersShareTheirStateOverTheRanks) {
  LoadedConfig one = record(), eight = record();
  DryRunOptions options;
  const std::int64_t whole = bytes_of(dry_run(one, test_plugin_host(), options).rows, "optimiser state");
  options.ranks = 8;
  const DryRun plan = dry_run(eight, test_plugin_host(), options);
  const std::int64_t banks = 22 * 512 * 512 + 22 * 256 * 512 + 2 * 11 * 2048 * 512;
  // Slices of ceil(22/8) = 3 and ceil(11/8) = 2 matrices.
  const std::int64_t slices = 3 * 512 * 512 + 3 * 256 * 512 + 2 * 2 * 2048 * 512;
  EXPECT_EQ(bytes_of(plan.rows, "optimiser state"), whole - 2 * banks + 2 * slices);
}

TEST(DryRun, FloatingPointOperationsMatchTheClosedForm) {
  LoadedConfig loaded = record();
  const DryRun plan = dry_run(loaded, test_plugin_host());
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[0].layers, 11);
  EXPECT_EQ(plan.steps[1].layers, 17);
  // Per token and layer: q and out d*d each, k and v d*d/2 each, MLP 8 d*d, gate 8 d; head V*d. Forward
  // and backward: 6.
  const double d = 512, tokens = 786432, layer = 11 * d * d + 8 * d;
  const double looped_less_plain = plan.steps[1].cost.matmul_flops - plan.steps[0].cost.matmul_flops;
  EXPECT_NEAR(looped_less_plain, 6 * tokens * 6 * layer, 1e-9 * looped_less_plain);
  EXPECT_GT(plan.steps[0].cost.matmul_flops, 6 * tokens * (11 * layer + 8192 * d));
  const double pairs = tokens * (2048 + 1) / 2;
  EXPECT_NEAR(plan.steps[0].cost.attention_flops, 11 * 14 * 64.0 * 8 * pairs, 1e-3);
}

}  // namespace
}  // namespace mulligan::end_to_end::dry_run_test
