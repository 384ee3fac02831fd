// Quantisation against the public reference (fixture folder gptq/, weights and tokens of model/).
#include "framework/artifact/artifact_layout.h"
#include "tests/golden/quant_fixture.h"
#include "tests/support/quantize_matrix.h"

namespace mulligan::gptq_golden_test {
namespace {

// The digits that follow `word` in `name`: 12.85 of "m0.cs12.85.int6" for "cs".
double number_after(const std::string& name, const std::string& word) {
  return std::stod(name.substr(name.find(word) + word.size()));
}

// Many small pieces, in the wrong order.
void scattered_for(std::int64_t count, std::int64_t, void (*body)(void*, std::int64_t, std::int64_t),
                   void* context) {
  for (std::int64_t i = count; i-- > 0;) body(context, i, i + 1);
}

QuantizedMatrix quantize(const GoldenFixture& fixture, const std::string& matrix, const std::string& name,
                         const std::string& options, decltype(&scattered_for) parallel_for = nullptr) {
  const std::vector<float> weight = fixture.floats(matrix + ".W"), hessian = fixture.floats(matrix + ".H");
  mlg_quantize_request request{};
  request.name = matrix.c_str();
  request.weight = weight.data();
  request.hessian = hessian.data();
  request.rows = fixture.shape(matrix + ".W")[0];
  request.columns = fixture.shape(matrix + ".W")[1];
  request.bits = static_cast<std::int32_t>(number_after(name, ".int"));
  request.clip_sigmas = number_after(name, ".cs");
  request.parallel_for = parallel_for;
  return quantize_matrix(*make_plugin<Quantizer>(MLG_QUANTIZER, "gptq", options), request);
}

TEST(GptqGolden, EveryMatrixCaseToTheLastCode) {
  const GoldenFixture fixture("gptq");
  int compared = 0;
  for (const auto& [name, check] : fixture.manifest().at("checks").items()) {
    if (!fixture.has(name + ".q")) continue;
    SCOPED_TRACE(name);
    const std::string matrix = name.substr(0, name.find('.'));
    const std::string block = fmt::format("block = {}", static_cast<int>(number_after(name, ".blk")));
    const QuantizedMatrix ours = quantize(fixture, matrix, name, block);
    EXPECT_EQ(ours.codes, fixture.codes(name + ".q"));
    EXPECT_EQ(ours.scales, fixture.floats(name + ".scale"));
    EXPECT_NEAR(ours.squared_error, check.at("hess_error").get<double>(),
                1e-4 * check.at("hess_error").get<double>());
    if (fixture.has(name + ".deq")) {
      const QuantizedTensor tensor{
          name, fixture.shape(name + ".q"), TensorFormat::integer, 8, ours.codes, halves_of(ours.scales), {}};
      EXPECT_EQ(dequantize(tensor), fixture.floats(name + ".deq"));
    }
    // Neither the block nor the way the work is cut changes a bit.
    const QuantizedMatrix again = quantize(fixture, matrix, name, "block = 17", scattered_for);
    EXPECT_EQ(again.codes, ours.codes);
    EXPECT_EQ(again.scales, ours.scales);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(GptqGolden, GatesAsInt8PerRowAndPassthroughAsFp16) {
  const GoldenFixture fixture("gptq");
  const QuantizedTensor gate = quantize_int8_rows("gate", fixture.shape("gate.W"), fixture.floats("gate.W"));
  EXPECT_EQ(gate.codes, fixture.codes("gate.q"));
  EXPECT_EQ(values_of(gate.scales), fixture.floats("gate.scale"));
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
    const StreamKind kind{"scales", stride};
    EXPECT_EQ(encode_layout(input, kind, "shuffled"), output);
    EXPECT_EQ(decode_layout(output, kind, "shuffled", 0), input);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

// The whole model: calibration, quantisation, losses.
class GptqModelGolden : public QuantGolden {
 protected:
  GptqModelGolden() : QuantGolden("gptq", "model.", "model", golden_model) {}

  // The manifest's rules as a table.
  std::vector<QuantizeTensorRow> table() const {
    const nlohmann::json &clip = checks_.at("clip"), &bits = checks_.at("bits");
    return {row("tok_emb.weight", TensorFormat::integer, bits.at("tok_emb"), clip.at("tok_emb")),
            row("*.attn_gate_w", TensorFormat::int8_row, 8),
            row("blocks.*.attn.*.weight", TensorFormat::integer, bits.at("matrix"), clip.at("attn")),
            row("blocks.*.mlp.*.weight", TensorFormat::integer, bits.at("matrix"), clip.at("mlp")),
            row("*", TensorFormat::fp16)};
  }

  const nlohmann::json& checks_ = fixture_.manifest().at("checks").at("model");
};

TEST_F(GptqModelGolden, SecondMomentsOfEveryLayersInput) {
  calibrate();
  int full = 0, diagonals = 0;
  for (const ArtifactPart& part : parts_) {
    if (!part.input) continue;
    SCOPED_TRACE(part.name);
    const std::vector<float>& ours = moments_.at(*part.input).hessian;
    const auto columns = static_cast<std::size_t>(part.type.dims[1]);
    if (fixture_.has("model.Hdiag." + part.name)) {
      const std::vector<double> theirs = fixture_.doubles("model.Hdiag." + part.name);
      ASSERT_EQ(theirs.size(), columns);
      const double largest = *std::ranges::max_element(theirs);
      for (std::size_t i = 0; i < columns; ++i) {
        EXPECT_NEAR(ours[i * columns + i], theirs[i], moments_tolerance * largest);
      }
      ++diagonals;
    }
    if (fixture_.has("model.H." + part.name)) {
      const std::vector<double> theirs = fixture_.doubles("model.H." + part.name);
      ASSERT_EQ(theirs.size(), ours.size());
      const double largest = *std::ranges::max_element(theirs);
      for (std::size_t i = 0; i < ours.size(); ++i)
        EXPECT_NEAR(ours[i], theirs[i], moments_tolerance * largest);
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
  std::size_t total = 0, mismatches = 0, plain = 0;
  for (const QuantizedTensor& tensor : quantize(table(), "")) {
    SCOPED_TRACE(tensor.name);
    if (tensor.codes.empty()) {
      EXPECT_EQ(dequantize(tensor), fixture_.floats("model.f16." + tensor.name));
      ++plain;
      continue;
    }
    EXPECT_EQ(values_of(tensor.scales), fixture_.floats("model.scale." + tensor.name));
    mismatches += code_mismatches(tensor.codes, fixture_.codes("model.q." + tensor.name));
    total += tensor.codes.size();
  }
  RecordProperty("code_mismatches", static_cast<int>(mismatches));
  EXPECT_LE(static_cast<double>(mismatches), mismatch_share * static_cast<double>(total));
  EXPECT_GT(total, 0U);
  EXPECT_GT(plain, 0U);
}

TEST_F(GptqModelGolden, LossesAfterDequantisation) {
  Weights weights;
  for (const ArtifactPart& part : parts_) {
    QuantizedTensor tensor = empty_tensor(part);
    if (fixture_.has("model.q." + part.name)) {
      tensor.codes = fixture_.codes("model.q." + part.name);
      tensor.scales = halves_of(fixture_.floats("model.scale." + part.name));
      put(weights, part, dequantize(tensor));
    } else {
      put(weights, part, fixture_.floats("model.f16." + part.name));
    }
  }
  int compared = 0;
  for (const auto& [mode, losses] : checks_.at("losses").items()) {
    SCOPED_TRACE(mode);
    const auto tokens = static_cast<std::int32_t>(data_.element_count("tokens"));
    ModelRunner::Options options;
    options.layer_order = mode.starts_with("loop1") ? LayerOrderKind::looped : LayerOrderKind::plain;
    const double loss = mean_loss(
        weights, mode.ends_with(".varlen") ? data_.ints("cu_seqlens") : std::vector{0, tokens}, options);
    EXPECT_NEAR(loss, losses.at("f64").get<double>(), loss_tolerance);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace mulligan::gptq_golden_test
