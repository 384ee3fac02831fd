// Test-time training from the files of a trained run: what the command does.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "tests/end_to_end/tiny_ttt.h"
#include "tests/support/sentence.h"

namespace mulligan::end_to_end::ttt_test {
namespace {

const Overrides kTtt =
    with(ttt_keys, {"train.steps=5", "ttt.batch_documents=4", "ttt.context_tokens=64", "ttt.chunk_tokens=8",
                    "ttt.prefix_documents=6", "ttt.phases=2", "ttt.document_fraction=0.5",
                    "ttt.audit='ttt_audit.jsonl'", "ttt.optimizer.beta1=0.0"});

// One trained run for all tests of this file.
class TttEndToEnd : public testing::Test {
 protected:
  static const RunResult& trained() {
    static const RunResult result = tiny().train(kTtt);
    return result;
  }
  static TttResult adapted(LoadedConfig loaded, const std::filesystem::path& directory = {}) {
    return adapt(std::move(loaded), trained().directory / "weights.safetensors", directory);
  }
};

TEST_F(TttEndToEnd, ScoresATrainedRunReproduciblyAndGains) {
  const RunResult& run = trained();
  const TttResult first = adapted(tiny().config(kTtt), run.directory);
  EXPECT_LT(first.with.val_bpb, first.without.value().val_bpb);
  EXPECT_EQ(first.with.tokens, first.without.value().tokens);
  EXPECT_EQ(first.report.phases.size(), 2u);

  const auto json = nlohmann::json::parse(read_file(run.directory / "ttt_result.json"));
  EXPECT_EQ(json.at("with_ttt").at("val_bpb").get<double>(), first.with.val_bpb);
  EXPECT_EQ(json.at("batches").size(), first.report.batches.size());
  EXPECT_GT(lines_of(run.directory / "ttt_audit.jsonl").size(), first.report.batches.size());

  const TttResult second = adapted(tiny().config(kTtt), run.directory);
  EXPECT_EQ(first.with.val_bpb, second.with.val_bpb);
}

// A score transform in the order of the files is the record's and contested: it is marked as such, and strict rules
// refuse it. The legal orders are taken, and each result says what the same scores are without.
TEST_F(TttEndToEnd, AContestedOrderIsMarkedOrRefused) {
  const auto run = [&](const std::string& order, const std::string& rules, const std::string& fraction) {
    adapted(tiny().config(with(kTtt, {"ttt.audit=''", "ttt.document_fraction=" + fraction,
                                      "ttt.transform.plugin=ngram_tilt", "ttt.transform.order=3",
                                      "ttt.transform.text_order=" + order, "ledger.rules=" + rules})),
            trained().directory);
    return nlohmann::json::parse(read_file(trained().directory / "ttt_result.json"));
  };
  const auto refusal = [&](const std::string& order, const std::string& rules, const std::string& fraction) {
    return refusal_of(ExitCode::bad_configuration, [&] { run(order, rules, fraction); });
  };
  double without = 0;
  for (const std::string order : {"queue", "document", "file"}) {
    SCOPED_TRACE(order);
    const nlohmann::json result = run(order, "open", "1.0");
    const nlohmann::json& transform = result.at("transform");
    EXPECT_EQ(transform.at("plugin"), "ngram_tilt");
    EXPECT_EQ(transform.at("text_order"), order);
    EXPECT_EQ(transform.at("contested"), order == "file");
    const double plain = transform.at("without").at("bpb");
    if (without == 0) without = plain;
    EXPECT_EQ(plain, without) << "what the model learns does not depend on the transform";
    EXPECT_NE(plain, result.at("with_ttt").at("val_bpb").get<double>());
  }
  EXPECT_TRUE(contains(refusal("file", "strict", "1.0"), "strict"));
  EXPECT_TRUE(contains(refusal("file", "open", "0.5"), "ttt.document_fraction"));
}

// Steps of the base model that are small against a bf16 number are lost in bf16 masters, not in fp32.
TEST_F(TttEndToEnd, TheBaseModelsMastersKeepTheirDtypesWhereAsked) {
  const auto score = [&](bool keep, const std::string& rate) {
    LoadedConfig loaded =
        tiny().config(with(kTtt, {"ttt.audit=''", "ttt.base.lr=" + rate,
                                  std::string("ttt.base_keeps_dtypes=") + (keep ? "true" : "false")}));
    for (ParameterRow& row : loaded.config.parameters) row.master_dtype = MLG_BF16;
    return adapted(std::move(loaded)).with.val_loss_nats;
  };
  EXPECT_EQ(score(true, "1e-6"), score(true, "0.0"));
  EXPECT_NE(score(false, "1e-6"), score(false, "0.0"));
  EXPECT_NE(score(true, "0.05"), score(true, "0.0"));
}

// [ttt.base.optimizer]: sgd where nothing is said, with the momentum of [ttt.base]; another one trains otherwise.
TEST_F(TttEndToEnd, TheBaseModelsOptimizerIsChosen) {
  int runs = 0;
  const auto score = [&](const std::vector<std::string>& keys) {
    return adapted(tiny().config(with(with(kTtt, {"ttt.audit=''"}), keys)),
                   tiny().folder() / ("base" + std::to_string(runs++)))
        .with.val_bpb;
  };
  const double plain = score({});
  EXPECT_EQ(plain, score({"ttt.base.optimizer.plugin=sgd", "ttt.base.optimizer.nesterov=false"}));
  EXPECT_NE(plain, score({"ttt.base.momentum=0.1"}));
  EXPECT_NE(plain, score({"ttt.base.optimizer.nesterov=true"}));
  const double adamw = score({"ttt.base.optimizer.plugin=adamw"});
  EXPECT_NE(plain, adamw);
  EXPECT_EQ(adamw, score({"ttt.base.optimizer.plugin=adamw", "ttt.base.momentum=0.1"}))
      << "adamw has no such key";
  const auto refusal = [&](const std::vector<std::string>& keys) { return refusal_of([&] { score(keys); }); };
  EXPECT_TRUE(contains(refusal({"ttt.base.optimizer.momentum=0.5"}), "[ttt.base]"));
  EXPECT_TRUE(contains(refusal({"ttt.base.optimizer.plugin=schedule_free_adamw"}), "evaluation weights"));
}

// A learning rate that ruins the adapters is seen against the plain score of the same text.
TEST_F(TttEndToEnd, ACollapseIsSeen) {
  const auto run = [&](const std::string& lr, const std::string& on_collapse) {
    return adapted(
        tiny().config(with(kTtt, {"ttt.prefix_documents=0", "ttt.batch_documents=1", "ttt.audit=''",
                                  "ttt.optimizer.lr=" + lr, "ttt.on_collapse=" + on_collapse})),
        tiny().folder() / (on_collapse + lr));
  };
  const TttResult warned = run("0.5", "warn"), fallen = run("0.5", "fallback");
  EXPECT_GE(warned.report.collapsed_at, 0);
  EXPECT_LT(fallen.with.val_bpb, warned.with.val_bpb);
  const Comparison& seen =
      warned.report.batches.at(static_cast<std::size_t>(warned.report.collapsed_at)).compared;
  EXPECT_GT(seen.with.bpb(), seen.without.bpb());

  // Nothing learned, nothing gained, whatever rows the evaluation has.
  const TttResult idle = run("0.0", "warn");
  EXPECT_EQ(idle.report.compared.with.loss_nats, idle.report.compared.without.loss_nats);
  EXPECT_EQ(idle.with.val_bpb, idle.without.value().val_bpb);
  EXPECT_NE(idle.evaluation.value().val_bpb, idle.without.value().val_bpb);

  // off: the same scores without a pass before them.
  const TttResult off = run("0.5", "off");
  EXPECT_EQ(off.with.val_loss_nats, warned.with.val_loss_nats);
  EXPECT_FALSE(off.without.has_value());
  EXPECT_EQ(off.report.collapsed_at, -1);
  const auto json = nlohmann::json::parse(read_file(tiny().folder() / "off0.5" / "ttt_result.json"));
  EXPECT_TRUE(json.at("without_ttt").is_null());
  const auto books = nlohmann::json::parse(read_file(tiny().folder() / "off0.5" / "ledger.json")).dump();
  EXPECT_FALSE(contains(books, "ttt_plain"));
}

TEST_F(TttEndToEnd, IsRefusedInFp16AndWithoutItsSection) {
  const auto refusal = [](const Overrides& keys) {
    return sentence_of(ExitCode::bad_configuration, [&] { adapted(tiny().config(keys)); });
  };
  EXPECT_TRUE(contains(refusal(with(kTtt, {"train.compute_dtype=fp16"})), "train.compute_dtype=bf16"));
  EXPECT_TRUE(contains(refusal({}), "[ttt]"));
}

}  // namespace
}  // namespace mulligan::end_to_end::ttt_test
