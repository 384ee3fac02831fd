// Formats, quantisers, calibration rows, sizes: the parts of an artifact without a file.
#include "framework/artifact/quantize_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mulligan/half.hpp>
#include <numeric>
#include <set>

#include "framework/artifact/artifact_layout.h"
#include "framework/artifact/artifact_model.h"
#include "framework/artifact/calibration_rows.h"
#include "framework/artifact/size_report.h"
#include "framework/artifact/tensor_map.h"
#include "framework/core/error.h"
#include "framework/core/philox.h"
#include "framework/data/shard.h"
#include "framework/model/parameters.h"
#include "framework/plugin/quantizer.h"
#include "tests/support/plugins.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"

namespace mulligan::artifact_quantize_test {
namespace {

namespace fs = std::filesystem;

ModelConfig small_model() {
  ModelConfig model = mulligan::small_model(64, 3);
  model.lanes.parallel_start = 2;
  return model;
}

QuantizeTensorRow row(const char* match, TensorFormat format, std::int64_t bits = 6, double clip = 12.85) {
  return {match, format, bits, clip, {}};
}

std::vector<QuantizeTensorRow> record_rows() {
  return {row("tok_emb.weight", TensorFormat::integer, 7, 15.0), row("*.attn_gate_w", TensorFormat::int8_row),
          row("blocks.*.attn.*.weight", TensorFormat::integer, 6, 13.0),
          row("blocks.*.mlp.*.weight", TensorFormat::integer, 6, 12.0), row("*", TensorFormat::fp16)};
}

std::vector<float> normal_values(std::size_t count, const std::string& purpose, double deviation = 0.05) {
  std::vector<float> values(count);
  PhiloxStream(5, purpose).fill_normal(values, deviation);
  return values;
}

TEST(TensorMap, CoversEveryParameterExactlyOnce) {
  for (const ModelConfig& model : {small_model(), record_model()}) {
    std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> pieces;
    std::set<std::string> names;
    for (const ArtifactPart& part : artifact_parts(model)) {
      EXPECT_TRUE(names.insert(part.name).second) << part.name;
      pieces[part.parameter].emplace_back(part.offset, part.offset + part.type.elements());
    }
    std::int64_t total = 0;
    for (const ParameterSpec& spec : model_parameters(model)) {
      auto& list = pieces[spec.name];
      std::ranges::sort(list);
      std::int64_t next = 0;
      for (const auto& [begin, end] : list) {
        EXPECT_EQ(begin, next) << spec.name;
        next = end;
      }
      EXPECT_EQ(next, spec.type.elements()) << spec.name;
      total += next;
    }
    EXPECT_EQ(total, parameter_count(model_parameters(model)));
    EXPECT_EQ(pieces.size(), model_parameters(model).size());
  }
}

TEST(QuantizeTable, FirstMatchWinsAndNothingIsLeftOver) {
  const std::vector<ArtifactPart> parts = artifact_parts(small_model());
  const auto rows = record_rows();
  const auto table = resolve_quantize_table(parts, rows);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].name == "tok_emb.weight") {
      EXPECT_EQ(table[i]->bits, 7);
    }
    if (parts[i].name == "blocks.0.mlp.fc.weight") {
      EXPECT_EQ(table[i]->clip_sigmas, 12.0);
    }
    if (parts[i].name == "skip_weights") {
      EXPECT_EQ(table[i]->format, TensorFormat::fp16);
    }
  }
  const auto refused = [&](std::vector<QuantizeTensorRow> rows) {
    return sentence_of([&] { resolve_quantize_table(parts, rows); });
  };
  EXPECT_TRUE(
      contains(refused({row("blocks.*", TensorFormat::fp16)}), "'tok_emb.weight' is matched by no row"));
  EXPECT_TRUE(contains(refused({row("*", TensorFormat::fp16), row("tok_emb*", TensorFormat::fp16)}),
                       "takes no tensor"));
  EXPECT_TRUE(contains(refused({row("*", TensorFormat::integer)}), "has no rows to scale"));
}

TEST(Formats, Int8RowsClampTiesToEvenAndZeroRows) {
  const std::vector<float> weights{127.0F, 0.5F, 1.5F, -127.0F, 0.0F, 0.0F, 0.0F, 0.0F};
  const QuantizedTensor tensor = quantize_int8_rows("w", {2, 4}, weights);
  EXPECT_EQ(tensor.codes, (std::vector<std::int8_t>{127, 0, 2, -127, 0, 0, 0, 0}));
  EXPECT_EQ(sdk::half_value(tensor.scales[0]), 1.0F);
  EXPECT_EQ(dequantize(tensor), (std::vector<float>{127, 0, 2, -127, 0, 0, 0, 0}));
}

// As the challenge's first script: numpy.quantile of the magnitudes, clipping there, scales of at least 1/127.
TEST(Formats, Int8RowsClipAtAQuantileAndHaveALeastRange) {
  const std::vector<float> weights{8.0F, -2.0F, 4.0F, 1.0F, 0.0F, 0.3F, -0.2F, 0.1F, 0.4F, 0.1F};
  const QuantizedTensor tensor = quantize_int8_rows("w", {2, 5}, weights, 0.9, 1.0);
  // Magnitudes 0 1 2 4 8: their 0.9 quantile is 4 + 0.6 * 4 = 6.4; of the other row 0.36, less than 1.
  EXPECT_EQ(sdk::half_value(tensor.scales[0]), sdk::round_to_half(6.4 / 127));
  EXPECT_EQ(sdk::half_value(tensor.scales[1]), sdk::round_to_half(1.0 / 127));
  EXPECT_EQ(tensor.codes, (std::vector<std::int8_t>{127, -40, 79, 20, 0, 38, -25, 13, 46, 13}));
  // The largest of all by default, and of a row of one.
  EXPECT_EQ(quantize_int8_rows("w", {2, 5}, weights).codes[2], 64);
  EXPECT_EQ(quantize_int8_rows("w", {1, 1}, std::vector<float>{-3.0F}, 0.5, 0).codes[0], -127);
}

TEST(Formats, ValuesThatFp16CannotHoldAreRefused) {
  EXPECT_TRUE(refuses([] { store_as(TensorFormat::fp16, "w", {1}, std::vector<float>{1e6F}); }, "bf16"));
  const QuantizedTensor stored = store_as(TensorFormat::bf16, "w", {1}, std::vector<float>{1e6F});
  EXPECT_NEAR(dequantize(stored)[0], 1e6F, 4e3F);
  const std::vector<float> exact = normal_values(40, "exact");
  EXPECT_EQ(dequantize(store_as(TensorFormat::fp32, "w", {40}, exact)), exact);
}

QuantizedModel quantize_small(const std::string& plugin, const std::vector<QuantizeTensorRow>& rows,
                              const std::function<std::vector<float>(const std::string&)>& weights) {
  const auto quantizer = make_plugin<Quantizer>(MLG_QUANTIZER, plugin);
  QuantizeSources sources;
  sources.weights = weights;
  sources.hessian = [](const TapPoint& point) {
    // A random positive definite matrix: correlated inputs, on which GPTQ can gain.
    const std::size_t n = point.kind == TapKind::mlp_down ? 24 : 16;
    const std::vector<float> x = normal_values(n * 64, "inputs", 1.0);
    std::vector<float> h(n * n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t t = 0; t < 64; ++t)
          h[i * n + j] += (x[t * n + i] + x[t * n]) * (x[t * n + j] + x[t * n]);
      }
    }
    return h;
  };
  sources.quantizer = quantizer.get();
  sources.threads = 2;
  return quantize_model(small_model(), rows, sources);
}

std::vector<float> small_weights(const std::string& parameter) {
  for (const ParameterSpec& spec : model_parameters(small_model())) {
    if (spec.name == parameter)
      return normal_values(static_cast<std::size_t>(spec.type.elements()), parameter);
  }
  return {};
}

// The error that the plugin reports is the one of the definition, and GPTQ's is the smaller.
TEST(Quantizers, GptqLosesLessThanRoundingToNearest) {
  const QuantizedModel gptq = quantize_small("gptq", record_rows(), small_weights);
  const QuantizedModel rtn = quantize_small("rtn", record_rows(), small_weights);
  const std::vector<ArtifactPart> parts = artifact_parts(small_model());
  double gptq_total = 0, rtn_total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (gptq.tensors[i].format != TensorFormat::integer) continue;
    const std::vector<float> whole = small_weights(parts[i].parameter);
    const std::vector<float> nearest = dequantize(rtn.tensors[i]);
    double squares = 0;
    for (std::size_t k = 0; k < nearest.size(); ++k) {
      squares +=
          std::pow(static_cast<double>(whole[static_cast<std::size_t>(parts[i].offset) + k]) - nearest[k], 2);
    }
    EXPECT_NEAR(rtn.squared_error[i], squares, 1e-9 * squares) << parts[i].name;
    EXPECT_EQ(gptq.tensors[i].scales, rtn.tensors[i].scales) << "one rule for the scales";
    // Both under the layer's second moments.
    const std::size_t n = static_cast<std::size_t>(parts[i].type.dims[1]);
    const std::vector<float> x = normal_values(n * 64, "inputs", 1.0);
    const auto error = [&](const QuantizedTensor& tensor) {
      const std::vector<float> values = dequantize(tensor);
      double sum = 0;
      for (std::size_t r = 0; r < values.size() / n; ++r) {
        for (std::size_t t = 0; t < 64; ++t) {
          double y = 0;
          for (std::size_t c = 0; c < n; ++c) {
            const std::size_t at = r * n + c;
            y += (static_cast<double>(whole[static_cast<std::size_t>(parts[i].offset) + at]) - values[at]) *
                 (static_cast<double>(x[t * n + c]) + x[t * n]);
          }
          sum += y * y;
        }
      }
      return sum;
    };
    EXPECT_NEAR(gptq.squared_error[i], error(gptq.tensors[i]), 1e-4 * error(gptq.tensors[i]))
        << parts[i].name;
    gptq_total += error(gptq.tensors[i]);
    rtn_total += error(rtn.tensors[i]);
  }
  EXPECT_LT(gptq_total, 0.8 * rtn_total);
}

// What a plugin makes of a matrix of 4 bits; `moments`: null or the second moments of its columns.
struct QuantizedMatrix {
  std::vector<std::int8_t> codes;
  double squared_error = 0;
};

QuantizedMatrix quantize_matrix(const Quantizer& quantizer, const char* name,
                                const std::vector<float>& weights, std::int64_t rows, std::int64_t columns,
                                const float* moments) {
  QuantizedMatrix made{std::vector<std::int8_t>(weights.size())};
  std::vector<float> scales(static_cast<std::size_t>(rows));
  const auto parallel = [](std::int64_t count, std::int64_t, void (*body)(void*, std::int64_t, std::int64_t),
                           void* context) { body(context, 0, count); };
  mlg_quantize_result result{made.codes.data(), scales.data(), 0, nullptr};
  quantizer.quantize(
      {name, weights.data(), moments, rows, columns, 4, 3.0, parallel, nullptr, nullptr, 0, 0, 0}, result);
  made.squared_error = result.squared_error;
  return made;
}

TEST(Quantizers, WithoutSecondMomentsGptqRoundsToNearest) {
  const auto quantize = [](const char* plugin) {
    return quantize_matrix(*make_plugin<Quantizer>(MLG_QUANTIZER, plugin), "w",
                           normal_values(20 * 33, "plain"), 20, 33, nullptr);
  };
  const QuantizedMatrix gptq = quantize("gptq"), rtn = quantize("rtn");
  EXPECT_EQ(gptq.codes, rtn.codes);
  EXPECT_NEAR(gptq.squared_error, rtn.squared_error, 1e-9 * rtn.squared_error);
}

TEST(Quantizers, BrokenInputsAreNamed) {
  const auto with = [](float value) {
    return [value](const std::string& parameter) {
      std::vector<float> weights = small_weights(parameter);
      if (parameter == "kv_bank") weights[3] = value;
      return weights;
    };
  };
  EXPECT_TRUE(refuses([&] { quantize_small("gptq", record_rows(), with(NAN)); }, "blocks.0.attn.c_k.weight"));

  const auto quantizer = make_plugin<Quantizer>(MLG_QUANTIZER, "gptq", "damping = 0.0");
  const std::vector<float> weights(4, 1.0F), indefinite{1, 2, 2, 1};
  EXPECT_TRUE(refuses([&] { quantize_matrix(*quantizer, "some.matrix", weights, 2, 2, indefinite.data()); },
                      "some.matrix", "not positive definite"));
}

TEST(ArtifactModel, OnlyTheTensorsOfTheModelAreTaken) {
  Artifact artifact;
  artifact.tensors = quantize_small("rtn", record_rows(), small_weights).tensors;
  require_model(artifact, small_model(), "a");
  const auto refused = [&](const std::function<void(Artifact&)>& change) {
    Artifact changed = artifact;
    change(changed);
    return sentence_of([&] { require_model(changed, small_model(), "a"); });
  };
  EXPECT_TRUE(contains(refused([](Artifact& a) { a.tensors.pop_back(); }), "tensors, but the model"));
  EXPECT_TRUE(
      contains(refused([](Artifact& a) { std::swap(a.tensors[1], a.tensors[2]); }), "where the model"));
  EXPECT_TRUE(contains(refused([](Artifact& a) { std::swap(a.tensors[0].shape[0], a.tensors[0].shape[1]); }),
                       "shape"));
}

class CalibrationRowsTest : public testing::Test {
 protected:
  CalibrationRowsTest() {
    // Token values encode shard and place.
    for (int shard = 0; shard < 2; ++shard) {
      std::vector<std::uint16_t> tokens(static_cast<std::size_t>(100 + 50 * shard));
      std::iota(tokens.begin(), tokens.end(), static_cast<std::uint16_t>(1000 * shard));
      paths_.push_back(folder_.path() / fmt::format("shard{}.bin", shard));
      write_shard(paths_.back(), tokens);
    }
  }
  test_support::ScratchFolder folder_;
  std::vector<fs::path> paths_;
};

TEST_F(CalibrationRowsTest, EveryRowOnceThenAgainDependingOnTheSeedAlone) {
  CalibrationRows rows(paths_, 10, 2000, 9), same(paths_, 10, 2000, 9), other(paths_, 10, 2000, 10);
  const auto count = static_cast<std::size_t>(rows.count());
  EXPECT_GE(count, 9U + 14U);
  std::vector<std::int32_t> first(count * 10), again(count * 10), different(count * 10);
  rows.next(first);
  for (std::size_t i = 0; i < count; ++i)
    same.next(std::span(again).subspan(i * 10, 10));  // row by row: the same
  EXPECT_EQ(first, again);
  std::set<std::int32_t> starts;
  bool sorted = true;
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(starts.insert(first[i * 10]).second) << "a row came twice";
    for (std::size_t t = 1; t < 10; ++t)
      EXPECT_EQ(first[i * 10 + t], first[i * 10] + static_cast<std::int32_t>(t));
    sorted = sorted && (i == 0 || first[i * 10] > first[i * 10 - 10]);
  }
  EXPECT_FALSE(sorted);
  different.resize(static_cast<std::size_t>(other.count()) * 10);
  other.next(different);
  EXPECT_NE(first, different);
  std::vector<std::int32_t> second(count * 10);
  rows.next(second);  // the next pass has the same rows in another order
  std::set<std::int32_t> second_starts;
  for (std::size_t i = 0; i < count; ++i) second_starts.insert(second[i * 10]);
  EXPECT_EQ(second_starts, starts);
  EXPECT_NE(first, second);
}

TEST(CalibrationShards, AStrideTakesTheFirstAndEverySoManyth) {
  using Paths = std::vector<std::filesystem::path>;
  const Paths shards = {"a", "b", "c", "d", "e"};
  EXPECT_EQ(calibration_shards(shards, 1), shards);
  EXPECT_EQ(calibration_shards(shards, 2), (Paths{"a", "c", "e"}));
  EXPECT_EQ(calibration_shards(shards, 8), (Paths{"a"}));
}

TEST_F(CalibrationRowsTest, ShortShardsAndForeignTokensAreRefused) {
  EXPECT_TRUE(refuses([&] { CalibrationRows(paths_, 200, 2000, 1); }, "none of the 2 training shards"));
  EXPECT_EQ(CalibrationRows(paths_, 150, 2000, 1).count(), 1);
  CalibrationRows rows(paths_, 10, 500, 1);
  std::vector<std::int32_t> all(static_cast<std::size_t>(rows.count()) * 10);
  EXPECT_TRUE(refuses([&] { rows.next(all); }, "outside of the vocabulary"));
}

// The closed form against quantised normal numbers.
TEST(SizePrediction, EntropyOfNormalCodes) {
  for (const auto& [bits, clip] : {std::pair{6, 13.0}, {7, 15.0}, {4, 3.0}}) {
    const int qmax = (1 << (bits - 1)) - 1;
    const std::vector<float> values = normal_values(400000, "entropy", 1.0);
    std::map<int, double> counts;
    for (const float value : values) {
      ++counts[std::clamp(static_cast<int>(std::nearbyint(value * qmax / clip)), -qmax, qmax)];
    }
    double measured = 0;
    for (const auto& [code, count] : counts) measured += count / 4e5 * std::log2(4e5 / count);
    EXPECT_NEAR(normal_code_entropy(clip / qmax, qmax), measured, 0.01);
  }
  EXPECT_EQ(normal_code_entropy(1e9, 31), 0.0);
}

// The record's own artifact: 15.98 MB with 29.8 kB of code.
TEST(SizePrediction, TheRecordsModelFitsAsPublished) {
  const std::vector<double> sizes = predict_sizes(artifact_parts(record_model()), record_rows());
  const double total = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  EXPECT_NEAR(total / 15.95e6, 1.0, 0.04);
}

TEST(SizeReport, TotalsStandAgainstTheLimit) {
  Artifact artifact;
  artifact.tensors = quantize_small("rtn", record_rows(), small_weights).tensors;
  ArtifactSizes sizes;
  serialize_artifact(artifact, Compression::brotli, &sizes);
  const std::string below = format_sizes(artifact, sizes, sizes.tensors, {1000, "9 files"}, 16000000);
  EXPECT_TRUE(contains(below, "below the limit of 16,000,000", "the code of an evaluation: 9 files\n"));
  EXPECT_NE(format_sizes(artifact, sizes, sizes.tensors, {}, 0).find("not counted"), std::string::npos);
  EXPECT_NE(below.find("blocks.2.mlp.proj.weight"), std::string::npos);
  const std::string over = format_sizes(artifact, sizes, sizes.tensors, {1000, "9 files"}, 1500);
  EXPECT_NE(over.find("OVER the limit of 1,500"), std::string::npos) << over;
}

}  // namespace
}  // namespace mulligan::artifact_quantize_test
