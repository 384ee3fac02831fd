// Test-time training from the files of a trained run: what the command does.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/train/weights.h"
#include "framework/ttt/run_ttt.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"

namespace mulligan::end_to_end {
namespace {

const std::vector<std::string> kTtt = {"train.steps=5",
                                       "ttt.batch_documents=4",
                                       "ttt.context_tokens=64",
                                       "ttt.chunk_tokens=8",
                                       "ttt.prefix_documents=6",
                                       "ttt.phases=2",
                                       "ttt.document_fraction=0.5",
                                       "ttt.audit='ttt_audit.jsonl'",
                                       "ttt.optimizer.lr=0.002",
                                       "ttt.optimizer.beta1=0.0",
                                       "ttt.adapters.rank=4",
                                       "ttt.adapters.alpha=4",
                                       "ttt.base.chunk_tokens=128",
                                       "ttt.base.batch_rows=2"};

TEST(TttEndToEnd, ScoresATrainedRunReproduciblyAndGains) {
  TinyRun tiny;
  const RunResult trained = tiny.train(kTtt);
  LoadedConfig loaded = tiny.config(kTtt);
  const auto load = [&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_weights(trained.directory / "weights.safetensors", store, layouts);
  };
  TttOptions options;
  options.console = nullptr;
  options.directory = trained.directory;
  const TttResult first = run_ttt(loaded, test_plugin_host(), "weights", load, options);
  EXPECT_LT(first.with.val_bpb, first.without.val_bpb);
  EXPECT_EQ(first.with.tokens, first.without.tokens);
  EXPECT_EQ(first.report.phases.size(), 2u);

  const auto json = nlohmann::json::parse(read_file(trained.directory / "ttt_result.json"));
  EXPECT_EQ(json.at("with_ttt").at("val_bpb").get<double>(), first.with.val_bpb);
  EXPECT_EQ(json.at("batches").size(), first.report.batches.size());
  EXPECT_GT(lines_of(trained.directory / "ttt_audit.jsonl").size(), first.report.batches.size());

  const TttResult second = run_ttt(loaded, test_plugin_host(), "weights", load, options);
  EXPECT_EQ(first.with.val_bpb, second.with.val_bpb);
}

TEST(TttEndToEnd, NeedsItsSection) {
  TinyRun tiny;
  LoadedConfig loaded = tiny.config({});
  try {
    run_ttt(loaded, test_plugin_host(), "nothing", [](TensorStore&, const std::vector<ParameterLayout>&) {},
            {});
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_configuration);
    EXPECT_NE(std::string(error.what()).find("[ttt]"), std::string::npos);
  }
}

}  // namespace
}  // namespace mulligan::end_to_end
