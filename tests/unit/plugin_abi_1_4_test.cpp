// A quantiser built with the headers of ABI 1.4 goes on working: it chooses nothing over the whole model.
#include <gtest/gtest.h>

#include "framework/artifact/quantize_model.h"
#include "framework/model/parameters.h"
#include "framework/plugin/quantizer.h"
#include "tests/support/plugins.h"

namespace mulligan {
namespace {

TEST(PluginAbi14, AQuantiserWithoutChoicesStillQuantisesAModel) {
  const PluginHandle plugin = test_plugin_host().load(
      PluginKind::quantizer, "half_quantizer",
      std::filesystem::path(MULLIGAN_ABI_1_4_PLUGIN_DIRECTORY) / "mulligan_half_quantizer.so");
  EXPECT_EQ(plugin->abi(), "1.4");
  const Quantizer quantizer(plugin, test_plugin_config(plugin));
  EXPECT_FALSE(quantizer.chooses());
  ModelConfig model;
  model.vocabulary = 24;
  model.layers = 1;
  model.width = 16;
  model.heads = 2;
  model.kv_heads = 1;
  model.mlp_hidden = 24;
  resolve_model_defaults(model);
  const std::vector<QuantizeTensorRow> rows{{"tok_emb.weight", TensorFormat::integer, 4, 3, {}},
                                            {"*", TensorFormat::fp32, 0, 0, {}}};
  QuantizeSources sources;
  sources.quantizer = &quantizer;
  sources.weights = [&](const std::string& parameter) {
    for (const ParameterSpec& spec : model_parameters(model))
      if (spec.name == parameter)
        return std::vector<float>(static_cast<std::size_t>(spec.type.elements()), 1.5F);
    return std::vector<float>();
  };
  const QuantizedModel quantized = quantize_model(model, rows, sources);
  ASSERT_FALSE(quantized.tensors.empty());
  for (const QuantizedTensor& tensor : quantized.tensors) {
    EXPECT_TRUE(tensor.protected_columns.starts.empty());
    EXPECT_EQ(tensor.correction.rank, 0);
    for (const float weight : dequantize(tensor)) EXPECT_EQ(weight, 1.5F);
  }
}

}  // namespace
}  // namespace mulligan
