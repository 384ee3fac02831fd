// From a trained run to an artifact and back to a score, through the functions that the commands call.
#include <gtest/gtest.h>

#include "framework/artifact/artifact_layout.h"
#include "framework/artifact/artifact_run.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/safetensors.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"

namespace mulligan::end_to_end::artifact_test {
namespace {

namespace fs = std::filesystem;

class ArtifactRun : public testing::Test {
 protected:
  static const RunResult& trained() {
    static const RunResult result = tiny().train({"train.steps=40"});
    return result;
  }
  // The run's own configuration with a [quantize] section.
  static LoadedConfig config(const std::vector<std::string>& overrides = {}) {
    const std::string text = read_file(trained().directory / "config.toml") + quantize_section;
    return parse_run_config(text, "with quantize", overrides);
  }
  static MadeArtifact quantize(const fs::path& output, const std::vector<std::string>& overrides = {}) {
    return quantize_run(trained(), output, overrides);
  }
  static EvalResult score(const fs::path& artifact, const std::vector<std::string>& overrides = {}) {
    return evaluate_artifact(artifact, overrides, test_plugin_host(), {nullptr});
  }
};

TEST_F(ArtifactRun, TheArtifactAloneGivesTheScoreToTheLastDigit) {
  const fs::path made = tiny().folder() / "made.mulligan";
  const MadeArtifact artifact = quantize(made);
  EXPECT_EQ(fs::file_size(made), artifact.sizes.total_bytes);
  EXPECT_GT(artifact.calibrate_seconds, 0);
  const EvalResult first = score(made);

  // Quantising moves the score a little, and 6 bits cost little.
  ASSERT_TRUE(trained().validation);
  EXPECT_NE(first.val_bpb, trained().validation->val_bpb);
  EXPECT_NEAR(first.val_bpb, trained().validation->val_bpb, 0.05 * trained().validation->val_bpb);

  // A copy in an empty folder, with data and tokenizer named by --set, while the run is gone.
  const fs::path empty = tiny().folder() / "elsewhere";
  fs::create_directories(empty);
  fs::copy_file(made, empty / "artifact.mulligan");
  const LoadedConfig loaded = config();
  fs::rename(trained().directory, tiny().folder() / "hidden");
  const EvalResult again = score(
      empty / "artifact.mulligan",
      {"data.validation=" + loaded.config.data.validation, "data.tokenizer=" + loaded.config.data.tokenizer});
  fs::rename(tiny().folder() / "hidden", trained().directory);
  EXPECT_EQ(again.val_bpb, first.val_bpb);
  EXPECT_EQ(again.loss_sum_nats, first.loss_sum_nats);
}

TEST_F(ArtifactRun, MakingItTwiceGivesTheSameBytes) {
  const std::string once = quantize(tiny().folder() / "a").bytes;
  EXPECT_EQ(quantize(tiny().folder() / "b").bytes, once);
  EXPECT_NE(quantize(tiny().folder() / "c", {"run.seed=8"}).bytes, once) << "other calibration rows";
}

TEST_F(ArtifactRun, GptqScoresBetterThanRoundingAtFewBits) {
  const auto score_with = [&](const std::string& plugin) {
    const fs::path file = tiny().folder() / plugin;
    quantize(file, {"quantize.plugin=" + plugin, "quantize.tensors.2.bits=3",
                    "quantize.tensors.2.clip_sigmas=3.0"});
    return score(file).val_bpb;
  };
  EXPECT_LT(score_with("gptq"), score_with("rtn"));
}

TEST_F(ArtifactRun, EveryCompressionGivesTheSameWeights) {
  const MadeArtifact brotli = quantize(tiny().folder() / "brotli");
  for (const char* compression : {"zlib", "adaptive"}) {
    const fs::path file = tiny().folder() / compression;
    const MadeArtifact other = quantize(file, {std::string("quantize.compression=") + compression});
    EXPECT_TRUE(other.artifact.tensors == brotli.artifact.tensors);
    EXPECT_EQ(score(file).val_bpb, score(tiny().folder() / "brotli").val_bpb);
  }
}

// A forged artifact may carry any configuration; it must not reach files or libraries of its choice.
TEST_F(ArtifactRun, ItsConfigurationCanNeitherNameLibrariesNorReadFiles) {
  const fs::path file = tiny().folder() / "forged";
  Artifact artifact = quantize(file).artifact;
  const std::string own = artifact.configuration;
  const auto refused = [&](const std::string& configuration) {
    artifact.configuration = configuration;
    write_file_atomically(file, serialize_artifact(artifact, Compression::zlib));
    return sentence_of([&] { score(file); });
  };
  EXPECT_TRUE(contains(refused("extends = \"/etc/passwd\"\n" + own), "may not extend"));
  artifact.configuration = own;
  artifact.configuration.replace(own.find("[backend]\n"), 10, "[backend]\npath = \"/tmp/evil.so\"\n");
  write_file_atomically(file, serialize_artifact(artifact, Compression::zlib));
  EXPECT_NO_THROW(score(file)) << "the user's own plugin of that name scores it";
  EXPECT_TRUE(contains(refused("]]]"), "cannot use"));
  std::string wider = own;
  wider.replace(wider.find("mlp_hidden = 64"), 15, "mlp_hidden = 96");
  EXPECT_TRUE(contains(refused(wider), "where the model of its configuration"));
}

TEST_F(ArtifactRun, CodeIsCountedInASourceTree) {
  LoadedConfig loaded = config();
  QuantizeRunOptions options;
  options.count_code = true;
  options.source = tiny().folder() / "tree";
  write_file_atomically(options.source / "framework" / "a.cpp", "int a;");  // without an evaluator
  const auto table = [&] { return predict_artifact(loaded, test_plugin_host(), options); };
  EXPECT_TRUE(contains(table(), "not counted"));
  options.source = tiny().folder();
  EXPECT_TRUE(contains(sentence_of(table), "source tree"));
}

TEST_F(ArtifactRun, TheDryRunNeedsNoWeightsAndStrictRulesRefuse) {
  LoadedConfig loaded = config();
  const std::string table = predict_artifact(loaded, test_plugin_host());
  EXPECT_TRUE(contains(table, "blocks.3.mlp.proj.weight", "not counted"));
  const Overrides strict = {"ledger.rules=strict", "ledger.artifact_bytes=100"};
  EXPECT_TRUE(contains(sentence_of([&] { quantize(tiny().folder() / "strict", strict); }),
                       "ledger.artifact_bytes = 100"));
  LoadedConfig without = load_run_config((trained().directory / "config.toml").string());
  EXPECT_TRUE(
      contains(sentence_of([&] { predict_artifact(without, test_plugin_host()); }), "no [quantize] section"));
}

}  // namespace
}  // namespace mulligan::end_to_end::artifact_test
