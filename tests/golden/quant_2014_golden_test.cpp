// The later records' quantisation of a whole model against the public reference (fixture folder quant-2014/,
// weights and tokens of model-2014/): statistics, choices over the model, codes, scales, final loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mulligan/half.hpp>

#include "framework/artifact/calibrate.h"
#include "framework/artifact/quantize_model.h"
#include "framework/plugin/quantizer.h"
#include "tests/golden/golden_fixture.h"
#include "tests/golden/golden_model.h"
#include "tests/support/model_runner.h"

namespace mulligan::quant_2014_golden_test {
namespace {

// Tolerances of the fixtures' README, section 11, and of the manifest.
constexpr double moments_tolerance = 1e-4;  // of the tensor's largest element; ours are f32
constexpr double mismatch_share = 1e-3;     // of codes next to a rounding boundary, f32 moments
constexpr double loss_tolerance = 2e-5;

std::vector<std::int8_t> codes(const GoldenFixture& fixture, const std::string& name) {
  std::vector<std::int8_t> result;
  for (const std::uint8_t byte : fixture.bytes(name)) result.push_back(static_cast<std::int8_t>(byte));
  return result;
}

std::vector<float> values(std::span<const std::uint16_t> halves) {
  std::vector<float> result;
  for (const std::uint16_t bits : halves) result.push_back(sdk::half_value(bits));
  return result;
}

std::vector<std::uint16_t> halves(const std::vector<float>& values) {
  std::vector<std::uint16_t> result;
  for (const float value : values) result.push_back(sdk::half_bits(value));
  return result;
}

class Quant2014Golden : public testing::Test {
 protected:
  Quant2014Golden()
      : fixture_("quant-2014"),
        data_("model-2014"),
        params_("model-2014", "params.safetensors"),
        model_(golden_later_model(data_.manifest().at("config"))),
        parts_(artifact_parts(model_)),
        backend_(make_test_backend()) {}

  void calibrate() {
    const std::vector<std::int64_t> shape = fixture_.shape("calib_tokens");  // [batches, rows, T]
    const std::vector<std::int32_t> tokens = fixture_.ints("calib_tokens");
    store_ = std::make_unique<TensorStore>(*backend_);
    const auto layouts = parameter_layouts(model_, MLG_F32);
    calibrator_ = std::make_unique<Calibrator>(*store_, model_, layouts,
                                               CalibrationShape{shape[1], shape[2], shape[2] * 2});
    for (const ParameterLayout& layout : layouts) {
      // Calibration goes as far as the final norm: what the head alone reads is not there.
      if (store_->contains(master_name(layout.spec.name)))
        store_->upload(master_name(layout.spec.name), params_.floats(layout.spec.name));
    }
    SharedArena arena(*backend_);
    arena.bind({&calibrator_->program()}, *store_);
    const auto batch = static_cast<std::size_t>(shape[1] * shape[2]);
    for (std::size_t first = 0; first < tokens.size(); first += batch)
      calibrator_->add(std::span(tokens).subspan(first, batch));
    for (const ArtifactPart& part : parts_) {
      if (!part.input) continue;
      hessians_.try_emplace(*part.input, calibrator_->hessian(*part.input));
      input_rms_.try_emplace(*part.input, calibrator_->input_rms(*part.input));
    }
  }

  // Calls body(name of the setting, its settings, what it chose).
  template <typename Body>
  void for_settings(Body&& body) {
    int compared = 0;
    for (const auto& [name, result] : fixture_.manifest().at("results").items()) {
      SCOPED_TRACE(name);
      const nlohmann::json& entry = result;
      body(name, entry.at("settings"), entry);
      ++compared;
    }
    EXPECT_GT(compared, 0);
  }

  std::vector<QuantizeTensorRow> table(const nlohmann::json& settings) const {
    const auto row = [](const char* match, TensorFormat format, std::int64_t bits = 0, double clip = 0) {
      return QuantizeTensorRow{match, format, bits, clip, {}};
    };
    const std::int64_t bits = settings.at("matrix_bits");
    std::vector<QuantizeTensorRow> rows{
        row("tok_emb.weight", TensorFormat::integer, settings.at("embed_bits"),
            settings.at("embed_clip_sigmas")),
        row("blocks.*.attn.*.weight", TensorFormat::integer, bits, settings.at("attn_clip_sigmas")),
        row("blocks.*.mlp.*.weight", TensorFormat::integer, bits, settings.at("mlp_clip_sigmas"))};
    if (settings.at("gated_attn_quant_gate").get<bool>())
      rows.push_back(row("*.attn_gate_w", TensorFormat::integer, 8, 1));
    rows.push_back(row("*", TensorFormat::fp16));
    return rows;
  }

  QuantizedModel quantize(const nlohmann::json& settings) {
    const bool protects = settings.at("awq_lite_enabled").get<bool>();
    const auto quantizer = make_plugin<Quantizer>(
        MLG_QUANTIZER, "gptq",
        fmt::format(
            "protected_groups = {}\nprotected_size = {}\nprotected_bits = {}\ncorrected_tensors = {}\n"
            "correction_rank = {}\ncorrection_group = {}\nplain_range = \"largest\"",
            protects ? settings.at("awq_lite_group_top_k").get<int>() : 0,
            settings.at("awq_lite_group_size").get<int>(), settings.at("awq_lite_bits").get<int>(),
            settings.at("lqer_top_k").get<int>(), settings.at("lqer_rank").get<int>(),
            settings.at("lqer_asym_group").get<int>()));
    QuantizeSources sources;
    sources.weights = [&](const std::string& parameter) { return params_.floats(parameter); };
    sources.hessian = [&](const TapPoint& point) { return hessians_.at(point); };
    sources.input_rms = [&](const TapPoint& point) { return input_rms_.at(point); };
    sources.quantizer = quantizer.get();
    const std::vector<QuantizeTensorRow> rows = table(settings);
    return quantize_model(model_, rows, sources);
  }

  // All codes of a tensor in the order of its columns, as the fixture has them.
  static std::vector<std::int8_t> all_codes(const QuantizedTensor& tensor) {
    const std::vector<bool> mask = tensor.protected_columns.mask(tensor.columns());
    std::vector<std::int8_t> result;
    std::size_t usual = 0, fine = 0;
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
      result.push_back(mask[static_cast<std::size_t>(i % tensor.columns())]
                           ? tensor.protected_columns.codes[fine++]
                           : tensor.codes[usual++]);
    }
    return result;
  }

  GoldenFixture fixture_, data_, params_;
  ModelConfig model_;
  std::vector<ArtifactPart> parts_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<TensorStore> store_;
  std::unique_ptr<Calibrator> calibrator_;
  std::map<TapPoint, std::vector<float>> hessians_, input_rms_;
};

TEST_F(Quant2014Golden, MomentsAndInputsOfEveryLayer) {
  calibrate();
  int compared = 0;
  for (const ArtifactPart& part : parts_) {
    if (!part.input) continue;
    SCOPED_TRACE(part.name);
    const auto columns = static_cast<std::size_t>(part.type.dims[1]);
    const std::vector<double> diagonal = fixture_.doubles("Hdiag." + part.name);
    const std::vector<double> rms = fixture_.doubles("act_rms." + part.name);
    ASSERT_EQ(diagonal.size(), columns);
    ASSERT_EQ(rms.size(), columns);
    ASSERT_EQ(input_rms_.at(*part.input).size(), columns);
    const double largest = *std::ranges::max_element(diagonal), widest = *std::ranges::max_element(rms);
    for (std::size_t i = 0; i < columns; ++i) {
      EXPECT_NEAR(hessians_.at(*part.input)[i * columns + i], diagonal[i], moments_tolerance * largest);
      EXPECT_NEAR(input_rms_.at(*part.input)[i], rms[i], moments_tolerance * widest);
    }
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST_F(Quant2014Golden, ChoicesCodesAndScalesOfEverySetting) {
  calibrate();
  for_settings([&](const std::string& name, const nlohmann::json& settings, const nlohmann::json& result) {
    const QuantizedModel ours = quantize(settings);
    std::size_t total = 0, mismatches = 0;
    for (const QuantizedTensor& tensor : ours.tensors) {
      SCOPED_TRACE(tensor.name);
      const std::string theirs = name + "." + tensor.name;
      if (tensor.name.ends_with(".attn_gate_w") && tensor.format == TensorFormat::integer) {
        EXPECT_EQ(tensor.codes, codes(fixture_, theirs + ".gq"));
        EXPECT_EQ(values(tensor.scales), fixture_.floats(theirs + ".gs"));
        continue;
      }
      if (tensor.format != TensorFormat::integer) {
        if (fixture_.has(name + ".f16." + tensor.name)) {
          EXPECT_EQ(dequantize(tensor), fixture_.floats(name + ".f16." + tensor.name));
        }
        continue;
      }
      EXPECT_EQ(values(tensor.scales), fixture_.floats(theirs + ".scale"));
      const ProtectedColumns& fine = tensor.protected_columns;
      ASSERT_EQ(fixture_.has(theirs + ".awqg_start"), !fine.starts.empty());
      if (!fine.starts.empty()) {
        EXPECT_TRUE(std::ranges::is_permutation(fine.starts, fixture_.ints(theirs + ".awqg_start")));
        EXPECT_EQ(values(fine.scales), fixture_.floats(theirs + ".awqg_s_hi"));
      }
      if (fixture_.has(theirs + ".q")) {
        const std::vector<std::int8_t> wanted = codes(fixture_, theirs + ".q"), given = all_codes(tensor);
        ASSERT_EQ(given.size(), wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          EXPECT_LE(std::abs(wanted[i] - given[i]), 1);
          if (wanted[i] != given[i]) ++mismatches;
        }
        total += wanted.size();
      }
      const nlohmann::json& chosen = result.at("chosen");
      const bool corrected = chosen.contains(tensor.name) &&
                             chosen.at(tensor.name).get<std::string>().find("lqer") != std::string::npos;
      EXPECT_EQ(tensor.correction.rank, corrected ? settings.at("lqer_rank").get<int>() : 0);
      if (!corrected) continue;
      EXPECT_EQ(tensor.correction.left.size(), fixture_.element_count(theirs + ".lqA_a"));
      EXPECT_EQ(tensor.correction.right.size(), fixture_.element_count(theirs + ".lqB_a"));
      EXPECT_EQ(tensor.correction.right_scales.size(), fixture_.element_count(theirs + ".lqBs_a"));
    }
    EXPECT_LE(static_cast<double>(mismatches), mismatch_share * static_cast<double>(total));
    EXPECT_GT(total, 0U);
  });
}

// Factors agree up to the signs of singular pairs, and the signs that we choose lose no more than theirs.
TEST_F(Quant2014Golden, CorrectedWeightsAreAsNear) {
  calibrate();
  int compared = 0;
  for_settings([&](const std::string& name, const nlohmann::json& settings, const nlohmann::json&) {
    for (const QuantizedTensor& tensor : quantize(settings).tensors) {
      if (!fixture_.has(name + ".deq." + tensor.name)) continue;
      SCOPED_TRACE(tensor.name);
      const auto part = std::ranges::find(parts_, tensor.name, &ArtifactPart::name);
      const std::vector<float> whole = params_.floats(part->parameter);
      const std::vector<float> ours = dequantize(tensor),
                               theirs = fixture_.floats(name + ".deq." + tensor.name);
      ASSERT_EQ(ours.size(), theirs.size());
      double our_squares = 0, their_squares = 0;
      for (std::size_t i = 0; i < ours.size(); ++i) {
        const double weight = whole[static_cast<std::size_t>(part->offset) + i];
        our_squares += std::pow(weight - ours[i], 2);
        their_squares += std::pow(weight - theirs[i], 2);
      }
      EXPECT_LE(our_squares, 1.001 * their_squares);
      if (tensor.correction.rank == 0) {
        EXPECT_NEAR(our_squares, their_squares, 1e-3 * their_squares);
      }
      ++compared;
    }
  });
  EXPECT_GT(compared, 0);
}

// The fixture's own codes, scales and factors, read back by us.
class GivenWeights {
 public:
  GivenWeights(const GoldenFixture& fixture, const GoldenFixture& params, std::string setting,
               const nlohmann::json& settings)
      : fixture_(fixture), params_(params), setting_(std::move(setting)), settings_(settings) {}

  // Empty where the fixture lacks the tensor's codes.
  std::vector<float> of(const ArtifactPart& part) const {
    const std::string name = setting_ + "." + part.name;
    QuantizedTensor tensor{part.name,
                           {part.type.dims.begin(), part.type.dims.begin() + part.type.rank},
                           TensorFormat::integer,
                           8,
                           {},
                           {},
                           {}};
    if (fixture_.has(name + ".gq")) {
      tensor.codes = codes(fixture_, name + ".gq");
      tensor.scales = halves(fixture_.floats(name + ".gs"));
      return dequantize(tensor);
    }
    if (fixture_.has(name + ".q")) return dequantize(integer(std::move(tensor), name));
    if (fixture_.has(name + ".scale")) return {};
    const std::vector<float> whole = params_.floats(part.parameter);
    return dequantize(store_as(TensorFormat::fp16, part.name, tensor.shape,
                               std::span(whole).subspan(static_cast<std::size_t>(part.offset),
                                                        static_cast<std::size_t>(part.type.elements()))));
  }

 private:
  QuantizedTensor integer(QuantizedTensor tensor, const std::string& name) const {
    const std::vector<std::int8_t> all = codes(fixture_, name + ".q");
    tensor.scales = halves(fixture_.floats(name + ".scale"));
    ProtectedColumns& fine = tensor.protected_columns;
    if (fixture_.has(name + ".awqg_start")) {
      for (const std::int32_t start : fixture_.ints(name + ".awqg_start")) fine.starts.push_back(start);
      std::ranges::sort(fine.starts);
      fine.size = settings_.at("awq_lite_group_size");
      fine.bits = 8;
      fine.scales = halves(fixture_.floats(name + ".awqg_s_hi"));
    }
    const std::vector<bool> mask = fine.mask(tensor.columns());
    for (std::size_t i = 0; i < all.size(); ++i)
      (mask[i % static_cast<std::size_t>(tensor.columns())] ? fine.codes : tensor.codes).push_back(all[i]);
    if (fixture_.has(name + ".lqA_a")) {
      const std::vector<std::int64_t> left = fixture_.shape(name + ".lqA_a");
      tensor.correction = {left[1],
                           left[0] * left[1],
                           settings_.at("lqer_asym_group"),
                           codes(fixture_, name + ".lqA_a"),
                           codes(fixture_, name + ".lqB_a"),
                           halves(fixture_.floats(name + ".lqAs_a")),
                           halves(fixture_.floats(name + ".lqBs_a"))};
    }
    return tensor;
  }

  const GoldenFixture& fixture_;
  const GoldenFixture& params_;
  std::string setting_;
  const nlohmann::json& settings_;
};

TEST_F(Quant2014Golden, LossOfTheGivenCodes) {
  const std::vector<std::int32_t> tokens = data_.ints("tokens"), targets = data_.ints("targets");
  const std::vector<std::int32_t> segments = data_.ints("cu_seqlens");
  int compared = 0;
  for_settings([&](const std::string& name, const nlohmann::json& settings, const nlohmann::json& result) {
    const GivenWeights given(fixture_, params_, name, settings);
    std::map<std::string, std::vector<float>> weights;
    for (const ArtifactPart& part : parts_) {
      const std::vector<float> values = given.of(part);
      if (values.empty()) return;  // this setting's codes are not all in the fixture
      std::vector<float>& whole = weights[part.parameter];
      whole.resize(std::max(whole.size(), static_cast<std::size_t>(part.offset) + values.size()));
      std::ranges::copy(values, whole.begin() + part.offset);
    }
    for (const auto& [use, loss] :
         {std::pair{HeadUse::training, "train_loss"}, {HeadUse::scoring, "eval_loss"}}) {
      ModelRunner::Options options;
      options.layer_order = LayerOrderKind::looped;
      options.gradients = false;
      options.segments = segments.size();
      options.head = use;
      ModelRunner runner(*backend_, model_, static_cast<std::int64_t>(tokens.size()), options);
      for (const auto& [parameter, values] : weights) runner.set_parameter(parameter, values);
      runner.run(tokens, targets, segments);
      EXPECT_NEAR(runner.mean_loss(), result.at(loss).get<double>(), loss_tolerance) << loss;
    }
    ++compared;
  });
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace mulligan::quant_2014_golden_test
