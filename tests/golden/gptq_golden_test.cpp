// Quantisation against the public reference (fixture folder gptq/, weights and tokens of model/).
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mulligan/half.hpp>

#include "framework/artifact/byte_layout.h"
#include "framework/artifact/calibrate.h"
#include "framework/artifact/quantize_model.h"
#include "framework/core/parallel.h"
#include "framework/plugin/quantizer.h"
#include "tests/golden/golden_fixture.h"
#include "tests/golden/golden_model.h"
#include "tests/support/model_runner.h"

namespace mulligan::gptq_golden_test {
namespace {

// Tolerances of the fixtures' README, section 11.
constexpr double hessian_tolerance = 1e-4;  // of the tensor's largest element
constexpr double mismatch_share =
    1e-3;  // of codes that may differ by 1 where the Hessian was computed in f32
constexpr double loss_tolerance = 2e-5;

std::vector<std::int8_t> codes(const GoldenFixture& fixture, const std::string& name) {
  std::vector<std::int8_t> result;
  for (const std::uint8_t byte : fixture.bytes(name)) result.push_back(static_cast<std::int8_t>(byte));
  return result;
}

// The digits that follow `word` in `name`: 12.85 of "m0.cs12.85.int6" for "cs".
double number_after(const std::string& name, const std::string& word) {
  return std::stod(name.substr(name.find(word) + word.size()));
}

void serial_for(std::int64_t count, std::int64_t, void (*body)(void*, std::int64_t, std::int64_t),
                void* context) {
  body(context, 0, count);
}
// Many small pieces, in the wrong order.
void scattered_for(std::int64_t count, std::int64_t, void (*body)(void*, std::int64_t, std::int64_t),
                   void* context) {
  for (std::int64_t i = count; i-- > 0;) body(context, i, i + 1);
}

struct MatrixResult {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  double squared_error = 0;
};

MatrixResult quantize_matrix(const GoldenFixture& fixture, const std::string& matrix, const std::string& name,
                             const std::string& options, decltype(serial_for)* parallel_for) {
  const auto quantizer = make_plugin<Quantizer>(MLG_QUANTIZER, "gptq", options);
  const std::vector<float> weight = fixture.floats(matrix + ".W"), hessian = fixture.floats(matrix + ".H");
  const std::vector<std::int64_t> shape = fixture.shape(matrix + ".W");
  MatrixResult result{std::vector<std::int8_t>(weight.size()),
                      std::vector<float>(static_cast<std::size_t>(shape[0])), 0};
  const mlg_quantize_request request{matrix.c_str(),
                                     weight.data(),
                                     hessian.data(),
                                     shape[0],
                                     shape[1],
                                     static_cast<std::int32_t>(number_after(name, ".int")),
                                     number_after(name, ".cs"),
                                     parallel_for,
                                     nullptr,
                                     nullptr,
                                     0,
                                     0,
                                     0};
  mlg_quantize_result out{result.codes.data(), result.scales.data(), 0, nullptr};
  quantizer->quantize(request, out);
  result.squared_error = out.squared_error;
  return result;
}

TEST(GptqGolden, EveryMatrixCaseToTheLastCode) {
  const GoldenFixture fixture("gptq");
  int compared = 0;
  for (const auto& [name, check] : fixture.manifest().at("checks").items()) {
    if (!fixture.has(name + ".q")) continue;
    SCOPED_TRACE(name);
    const std::string matrix = name.substr(0, name.find('.'));
    const std::string block = fmt::format("block = {}", static_cast<int>(number_after(name, ".blk")));
    const MatrixResult ours = quantize_matrix(fixture, matrix, name, block, serial_for);
    EXPECT_EQ(ours.codes, codes(fixture, name + ".q"));
    EXPECT_EQ(ours.scales, fixture.floats(name + ".scale"));
    EXPECT_NEAR(ours.squared_error, check.at("hess_error").get<double>(),
                1e-4 * check.at("hess_error").get<double>());
    if (fixture.has(name + ".deq")) {
      const QuantizedTensor tensor = [&] {
        QuantizedTensor t{name, fixture.shape(name + ".q"), TensorFormat::integer, 8, ours.codes, {}, {}};
        for (const float scale : ours.scales) t.scales.push_back(sdk::half_bits(scale));
        return t;
      }();
      EXPECT_EQ(dequantize(tensor), fixture.floats(name + ".deq"));
    }
    // Neither the block nor the way the work is cut changes a bit.
    const MatrixResult again = quantize_matrix(fixture, matrix, name, "block = 17", scattered_for);
    EXPECT_EQ(again.codes, ours.codes);
    EXPECT_EQ(again.scales, ours.scales);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(GptqGolden, GatesAsInt8PerRowAndPassthroughAsFp16) {
  const GoldenFixture fixture("gptq");
  const QuantizedTensor gate = quantize_int8_rows("gate", fixture.shape("gate.W"), fixture.floats("gate.W"));
  EXPECT_EQ(gate.codes, codes(fixture, "gate.q"));
  std::vector<float> scales;
  for (const std::uint16_t bits : gate.scales) scales.push_back(sdk::half_value(bits));
  EXPECT_EQ(scales, fixture.floats("gate.scale"));
  EXPECT_EQ(dequantize(gate), fixture.floats("gate.deq"));

  const QuantizedTensor plain = store_as(TensorFormat::fp16, "plain", fixture.shape("passthrough.in"),
                                         fixture.floats("passthrough.in"));
  EXPECT_EQ(dequantize(plain), fixture.floats("passthrough.out"));
}

TEST(GptqGolden, ByteShuffleOfEveryLengthAndStride) {
  const GoldenFixture fixture("gptq");
  const auto text = [](const nlohmann::json& numbers) {
    std::string bytes;
    for (const nlohmann::json& number : numbers) bytes += static_cast<char>(number.get<int>());
    return bytes;
  };
  int compared = 0;
  for (const auto& [name, shuffle] : fixture.manifest().at("byte_shuffle").items()) {
    SCOPED_TRACE(name);
    const int stride =
        name.find("stride") == std::string::npos ? 2 : static_cast<int>(number_after(name, "stride"));
    const std::string input = text(shuffle.at("input")), output = text(shuffle.at("output"));
    EXPECT_EQ(shuffle_bytes(input, stride), output);
    EXPECT_EQ(unshuffle_bytes(output, stride), input);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

// The whole model: calibration, quantisation, losses.
class GptqModelGolden : public testing::Test {
 protected:
  GptqModelGolden()
      : gptq_("gptq"),
        data_("model"),
        params_("model", "params.safetensors"),
        model_(golden_model(data_.manifest().at("config"))),
        backend_(make_test_backend()),
        checks_(gptq_.manifest().at("checks").at("model")) {}

  // Moments of the fixture's calibration batches, two of its four rows per forward pass.
  void calibrate() {
    const std::vector<std::int64_t> shape = gptq_.shape("model.calib_tokens");  // [batches, rows, T]
    const std::vector<std::int32_t> tokens = gptq_.ints("model.calib_tokens");
    store_ = std::make_unique<TensorStore>(*backend_);
    const auto layouts = parameter_layouts(model_, MLG_F32);
    CalibrationShape calibration{shape[1], shape[2], shape[2] * 2};
    calibrator_ = std::make_unique<Calibrator>(*store_, model_, layouts, calibration);
    for (const ParameterLayout& layout : layouts) {
      store_->upload(master_name(layout.spec.name), params_.floats(layout.spec.name));
    }
    SharedArena arena(*backend_);
    arena.bind({&calibrator_->program()}, *store_);
    const auto batch = static_cast<std::size_t>(shape[1] * shape[2]);
    for (std::size_t first = 0; first < tokens.size(); first += batch) {
      calibrator_->add(std::span(tokens).subspan(first, batch));
    }
    for (const ArtifactPart& part : artifact_parts(model_)) {
      if (part.input) hessians_.try_emplace(*part.input, calibrator_->hessian(*part.input));
    }
  }

  // The manifest's rules as a table.
  std::vector<QuantizeTensorRow> table() const {
    const nlohmann::json &clip = checks_.at("clip"), &bits = checks_.at("bits");
    const auto row = [](const char* match, TensorFormat format, std::int64_t bits, double clip) {
      return QuantizeTensorRow{match, format, bits, clip, {}};
    };
    return {row("tok_emb.weight", TensorFormat::integer, bits.at("tok_emb"), clip.at("tok_emb")),
            row("*.attn_gate_w", TensorFormat::int8_row, 8, 0),
            row("blocks.*.attn.*.weight", TensorFormat::integer, bits.at("matrix"), clip.at("attn")),
            row("blocks.*.mlp.*.weight", TensorFormat::integer, bits.at("matrix"), clip.at("mlp")),
            row("*", TensorFormat::fp16, 0, 0)};
  }

  GoldenFixture gptq_, data_, params_;
  ModelConfig model_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<TensorStore> store_;
  std::unique_ptr<Calibrator> calibrator_;
  std::map<TapPoint, std::vector<float>> hessians_;
  nlohmann::json checks_;
};

TEST_F(GptqModelGolden, SecondMomentsOfEveryLayersInput) {
  calibrate();
  int full = 0, diagonals = 0;
  for (const ArtifactPart& part : artifact_parts(model_)) {
    if (!part.input) continue;
    SCOPED_TRACE(part.name);
    const std::vector<float>& ours = hessians_.at(*part.input);
    const auto columns = static_cast<std::size_t>(part.type.dims[1]);
    if (gptq_.has("model.Hdiag." + part.name)) {
      const std::vector<double> theirs = gptq_.doubles("model.Hdiag." + part.name);
      ASSERT_EQ(theirs.size(), columns);
      const double largest = *std::ranges::max_element(theirs);
      for (std::size_t i = 0; i < columns; ++i) {
        EXPECT_NEAR(ours[i * columns + i], theirs[i], hessian_tolerance * largest);
      }
      ++diagonals;
    }
    if (gptq_.has("model.H." + part.name)) {
      const std::vector<double> theirs = gptq_.doubles("model.H." + part.name);
      ASSERT_EQ(theirs.size(), ours.size());
      const double largest = *std::ranges::max_element(theirs);
      for (std::size_t i = 0; i < ours.size(); ++i)
        EXPECT_NEAR(ours[i], theirs[i], hessian_tolerance * largest);
      ++full;
    }
  }
  EXPECT_GT(full, 0);
  EXPECT_GT(diagonals, 0);
}

// From tokens to codes: Hessians in f32, so a few codes next to a rounding boundary may fall to
// the other side.
TEST_F(GptqModelGolden, EveryTensorOfTheModel) {
  calibrate();
  const auto quantizer = make_plugin<Quantizer>(MLG_QUANTIZER, "gptq");
  QuantizeSources sources;
  sources.weights = [&](const std::string& parameter) { return params_.floats(parameter); };
  sources.hessian = [&](const TapPoint& point) { return hessians_.at(point); };
  sources.quantizer = quantizer.get();
  const std::vector<QuantizeTensorRow> rows = table();
  const QuantizedModel ours = quantize_model(model_, rows, sources);
  std::size_t total = 0, mismatches = 0, plain = 0;
  for (const QuantizedTensor& tensor : ours.tensors) {
    SCOPED_TRACE(tensor.name);
    if (tensor.codes.empty()) {
      EXPECT_EQ(dequantize(tensor), gptq_.floats("model.f16." + tensor.name));
      ++plain;
      continue;
    }
    std::vector<float> scales;
    for (const std::uint16_t bits : tensor.scales) scales.push_back(sdk::half_value(bits));
    EXPECT_EQ(scales, gptq_.floats("model.scale." + tensor.name));
    const std::vector<std::int8_t> theirs = codes(gptq_, "model.q." + tensor.name);
    ASSERT_EQ(theirs.size(), tensor.codes.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      EXPECT_LE(std::abs(theirs[i] - tensor.codes[i]), 1);
      if (theirs[i] != tensor.codes[i]) ++mismatches;
    }
    total += theirs.size();
  }
  RecordProperty("code_mismatches", static_cast<int>(mismatches));
  EXPECT_LE(static_cast<double>(mismatches), mismatch_share * static_cast<double>(total));
  EXPECT_GT(total, 0U);
  EXPECT_GT(plain, 0U);
}

TEST_F(GptqModelGolden, LossesAfterDequantisation) {
  const std::vector<std::int32_t> tokens = data_.ints("tokens"), targets = data_.ints("targets");
  int compared = 0;
  for (const auto& [mode, losses] : checks_.at("losses").items()) {
    SCOPED_TRACE(mode);
    const std::vector<std::int32_t> segments =
        mode.ends_with(".varlen") ? data_.ints("cu_seqlens")
                                  : std::vector<std::int32_t>{0, static_cast<std::int32_t>(tokens.size())};
    ModelRunner::Options options;
    options.layer_order = mode.starts_with("loop1") ? LayerOrderKind::looped : LayerOrderKind::plain;
    options.gradients = false;
    options.segments = segments.size();
    ModelRunner runner(*backend_, model_, static_cast<std::int64_t>(tokens.size()), options);
    std::map<std::string, std::vector<float>> weights;
    for (const ArtifactPart& part : artifact_parts(model_)) {
      QuantizedTensor tensor{part.name,
                             {part.type.dims.begin(), part.type.dims.begin() + part.type.rank},
                             TensorFormat::fp32,
                             0,
                             {},
                             {},
                             {}};
      std::vector<float> values;
      if (gptq_.has("model.q." + part.name)) {
        tensor.format = TensorFormat::integer;
        tensor.codes = codes(gptq_, "model.q." + part.name);
        for (const float scale : gptq_.floats("model.scale." + part.name))
          tensor.scales.push_back(sdk::half_bits(scale));
        values = dequantize(tensor);
      } else {
        values = gptq_.floats("model.f16." + part.name);
      }
      std::vector<float>& whole = weights[part.parameter];
      whole.resize(std::max(whole.size(), static_cast<std::size_t>(part.offset) + values.size()));
      std::ranges::copy(values, whole.begin() + part.offset);
    }
    for (const auto& [name, values] : weights) runner.set_parameter(name, values);
    runner.run(tokens, targets, segments);
    EXPECT_NEAR(runner.mean_loss(), losses.at("f64").get<double>(), loss_tolerance);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace mulligan::gptq_golden_test
