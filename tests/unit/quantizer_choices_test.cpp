// Quantisers that choose over the whole model: their choices reach the artifact, and impossible ones are refused.
#include <gtest/gtest.h>

#include "framework/artifact/quantize_model.h"
#include "framework/model/parameters.h"
#include "framework/plugin/quantizer.h"
#include "tests/support/built.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"

namespace mulligan::quantizer_choices_test {
namespace {

QuantizedModel quantized(const Quantizer& quantizer, float weight = 1) {
  const ModelConfig model = small_model(24, 1);
  const std::vector<QuantizeTensorRow> rows{{"tok_emb.weight", TensorFormat::integer, 6, 13, {}},
                                            {"blocks.*.mlp.*.weight", TensorFormat::integer, 6, 13, {}},
                                            {"*", TensorFormat::fp32, 0, 0, {}}};
  QuantizeSources sources;
  sources.quantizer = &quantizer;
  sources.weights = [&](const std::string& parameter) {
    for (const ParameterSpec& spec : model_parameters(model))
      if (spec.name == parameter)
        return std::vector<float>(static_cast<std::size_t>(spec.type.elements()), weight);
    return std::vector<float>();
  };
  return quantize_model(model, rows, sources);
}

std::unique_ptr<Quantizer> chooser(const std::string& how) {
  const PluginHandle plugin = test_plugin_host().load(
      MLG_QUANTIZER, "flawed_chooser", test_support::built("flawed_plugins") / "mulligan_flawed_chooser.so");
  return std::make_unique<Quantizer>(plugin, test_plugin_config(plugin, "how = \"" + how + "\""));
}

TEST(QuantizerChoices, ProtectedColumnsAndCorrectionsReachTheArtifact) {
  const QuantizedModel model = quantized(*chooser("not_at_all"));
  int chosen = 0;
  for (const QuantizedTensor& tensor : model.tensors) {
    if (tensor.protected_columns.starts.empty()) continue;
    ++chosen;
    EXPECT_EQ(tensor.protected_columns.starts, std::vector<std::int64_t>{0});
    EXPECT_EQ(tensor.protected_columns.size, 2);
    EXPECT_EQ(tensor.correction.rank, 1);
    // Codes of 1 with scale 1, in the protected columns 1/2, plus 2 from the two factors.
    const std::vector<float> weights = dequantize(tensor);
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_EQ(weights[i], i % static_cast<std::size_t>(tensor.columns()) < 2 ? 4.5F : 5.0F);
  }
  EXPECT_EQ(chosen, 1);
}

TEST(QuantizerChoices, WhatCannotBeIsAMistakeOfThePlugin) {
  const auto says = [](const char* how, const char* part) {
    const std::string sentence = sentence_of(ExitCode::run_failed, [&] { quantized(*chooser(how)); });
    EXPECT_TRUE(contains(sentence, part, "mistake of the plugin"));
  };
  says("no_tensor", "chose tensor 3 of 3");
  says("beyond", "protects columns 15 to 17 of 'tok_emb.weight'");
  says("overlap", "protects columns 1 to 3");
  says("no_width", "with 9 bits");
  says("twice", "corrected 'tok_emb.weight' twice");
  says("rank", "with rank 40");
  says("group", "groups of 0");
  says("scale", "a scale that fp16 does not hold");
  says("code", "the code 100");
}

// gptq without choices takes none, and needs no weights of the whole model for that.
TEST(QuantizerChoices, NoneByDefault) {
  const auto gptq = make_plugin<Quantizer>(MLG_QUANTIZER, "gptq", "damping = 0.5");
  EXPECT_TRUE(gptq->chooses());
  const mlg_quantize_tensor shape{"w", 8192, 512, 7, 14, nullptr, nullptr, nullptr};
  EXPECT_EQ(gptq->extra_bytes({&shape, 1}), 0);
  const auto choosing =
      make_plugin<Quantizer>(MLG_QUANTIZER, "gptq", "protected_groups = 1\ncorrected_tensors = 1");
  // 64 columns of a code more each and a scale; factors at 2 and 4 bits and their scales.
  const double expected =
      8192 * (64 * 1.0113 / 8 + 2) + 4 * (8192 * 2 + 512 * 4) / 8.0 + 2 + 2 * 4 * 512 / 64.0;
  EXPECT_NEAR(choosing->extra_bytes({&shape, 1}), expected, 20);
}

}  // namespace
}  // namespace mulligan::quantizer_choices_test
