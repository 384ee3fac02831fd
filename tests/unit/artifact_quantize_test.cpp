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
#include "framework/core/error.h"
#include "framework/core/philox.h"
#include "framework/data/shard.h"
#include "framework/model/parameters.h"
#include "tests/support/built.h"
#include "tests/support/plugins.h"
#include "tests/support/quantize_matrix.h"
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

// A weight of kv_bank is `odd`.
std::vector<QuantizedTensor> quantize_all(const Quantizer& quantizer, const ModelConfig& model,
                                          const std::vector<QuantizeTensorRow>& rows, float odd = 0) {
  QuantizeSources sources;
  sources.weights = [&](const std::string& parameter) {
    const std::vector<ParameterSpec> specs = model_parameters(model);
    const auto spec = std::ranges::find(specs, parameter, &ParameterSpec::name);
    std::vector<float> weights = normal_values(static_cast<std::size_t>(spec->type.elements()), parameter);
    if (parameter == "kv_bank") weights[3] = odd;
    return weights;
  };
  sources.quantizer = &quantizer;
  sources.threads = 2;
  return quantize_model(model, rows, sources);
}

std::vector<QuantizedTensor> quantize_small(float odd = 0) {
  return quantize_all(*make_plugin<Quantizer>(MLG_QUANTIZER, "rtn"), small_model(), record_rows(), odd);
}

// A matrix of 4 bits; `moments`: null or the second moments of its columns.
QuantizedMatrix quantize(const Quantizer& quantizer, const std::vector<float>& weights, std::int64_t rows,
                         std::int64_t columns, const float* moments = nullptr) {
  mlg_quantize_request request{};
  request.name = "some.matrix";
  request.weight = weights.data();
  request.hessian = moments;
  request.rows = rows;
  request.columns = columns;
  request.bits = 4;
  request.clip_sigmas = 3;
  return quantize_matrix(quantizer, request);
}

TEST(Quantizers, WithoutSecondMomentsGptqRoundsToNearest) {
  const auto by = [](const char* plugin) {
    return quantize(*make_plugin<Quantizer>(MLG_QUANTIZER, plugin), normal_values(20 * 33, "plain"), 20, 33);
  };
  const QuantizedMatrix gptq = by("gptq"), rtn = by("rtn");
  EXPECT_EQ(gptq.codes, rtn.codes);
  EXPECT_NEAR(gptq.squared_error, rtn.squared_error, 1e-9 * rtn.squared_error);
}

TEST(Quantizers, BrokenInputsAreNamed) {
  EXPECT_TRUE(refuses([] { quantize_small(NAN); }, "blocks.0.attn.c_k.weight"));
  const auto quantizer = make_plugin<Quantizer>(MLG_QUANTIZER, "gptq", "damping = 0.0");
  const std::vector<float> weights(4, 1.0F), indefinite{1, 2, 2, 1};
  EXPECT_TRUE(refuses([&] { quantize(*quantizer, weights, 2, 2, indefinite.data()); }, "some.matrix",
                      "not positive definite"));
}

// By the quantiser that chooses over the whole model, wrongly as `how` says.
std::vector<QuantizedTensor> choose(const std::string& how) {
  const PluginHandle plugin = test_plugin_host().load(
      MLG_QUANTIZER, "flawed_chooser", test_support::built("flawed_plugins") / "mulligan_flawed_chooser.so");
  return quantize_all(Quantizer(plugin, test_plugin_config(plugin, "how = \"" + how + "\"")),
                      mulligan::small_model(24, 1),
                      {row("tok_emb.weight", TensorFormat::integer),
                       row("blocks.*.mlp.*.weight", TensorFormat::integer), row("*", TensorFormat::fp32)});
}

TEST(QuantizerChoices, ProtectedColumnsAndCorrectionsReachTheArtifact) {
  int chosen = 0;
  for (const QuantizedTensor& tensor : choose("not_at_all")) {
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
    const std::string sentence = sentence_of(ExitCode::run_failed, [&] { choose(how); });
    EXPECT_TRUE(contains(sentence, part, "mistake of the plugin"));
  };
  says("no_tensor", "chose tensor 3 of 3");
  says("beyond", "protects columns 15 to 17 of 'tok_emb.weight'");
  says("overlap", "protects columns 1 to 3");
  says("no_width", "with 9 bits");
  says("twice", "corrected 'tok_emb.weight' twice");
  says("rank", "with rank 40");
  says("group", "groups of 0");
  says("scale", "which fp16 does not hold");
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

TEST(ArtifactModel, OnlyTheTensorsOfTheModelAreTaken) {
  Artifact artifact;
  artifact.tensors = quantize_small();
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
  QuantizeConfig quantize;
  quantize.tensors = record_rows();
  const std::vector<double> sizes = predict_sizes(artifact_parts(record_model()), quantize);
  const double total = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  EXPECT_NEAR(total / 15.95e6, 1.0, 0.04);
}

TEST(SizeReport, TotalsStandAgainstTheLimit) {
  Artifact artifact;
  artifact.tensors = quantize_small();
  ArtifactSizes sizes;
  serialize_artifact(artifact, Compression::brotli, &sizes);
  QuantizeConfig quantize;
  quantize.tensors = record_rows();
  const auto table = [&](const CodeSize& code, std::int64_t limit) {
    return format_sizes(artifact_parts(small_model()), quantize, sizes, code, limit);
  };
  const std::string below = table({1000, "9 files"}, 16000000);
  EXPECT_TRUE(contains(below, "below the limit of 16,000,000", "the code of an evaluation: 9 files\n"));
  EXPECT_TRUE(contains(table({}, 0), "not counted"));
  EXPECT_NE(below.find("blocks.2.mlp.proj.weight"), std::string::npos);
  const std::string over = table({1000, "9 files"}, 1500);
  EXPECT_NE(over.find("OVER the limit of 1,500"), std::string::npos) << over;
}

}  // namespace
}  // namespace mulligan::artifact_quantize_test
