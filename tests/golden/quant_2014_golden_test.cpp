// The later records' quantisation of a whole model against the public reference (fixture folder quant-2014/,
// weights and tokens of model-2014/): statistics, choices over the model, codes, scales, final loss.
#include <cmath>

#include "tests/golden/quant_fixture.h"

namespace mulligan::quant_2014_golden_test {
namespace {

class Quant2014Golden : public QuantGolden {
 protected:
  Quant2014Golden() : QuantGolden("quant-2014", "", "model-2014", golden_later_model) {}

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

  std::vector<QuantizedTensor> quantize(const nlohmann::json& settings) const {
    const bool protects = settings.at("awq_lite_enabled").get<bool>();
    return QuantGolden::quantize(
        table(settings),
        fmt::format(
            "protected_groups = {}\nprotected_size = {}\nprotected_bits = {}\ncorrected_tensors = {}\n"
            "correction_rank = {}\ncorrection_group = {}\nplain_range = \"largest\"",
            protects ? settings.at("awq_lite_group_top_k").get<int>() : 0,
            settings.at("awq_lite_group_size").get<int>(), settings.at("awq_lite_bits").get<int>(),
            settings.at("lqer_top_k").get<int>(), settings.at("lqer_rank").get<int>(),
            settings.at("lqer_asym_group").get<int>()));
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

  // The fixture's own codes, scales and factors, read back by us; empty where it lacks the tensor's codes.
  std::vector<float> given(const std::string& setting, const nlohmann::json& settings,
                           const ArtifactPart& part) const {
    const std::string name = setting + "." + part.name;
    QuantizedTensor tensor = empty_tensor(part);
    if (fixture_.has(name + ".gq")) {
      tensor.codes = fixture_.codes(name + ".gq");
      tensor.scales = halves_of(fixture_.floats(name + ".gs"));
      return dequantize(tensor);
    }
    if (fixture_.has(name + ".q")) return dequantize(given_integer(std::move(tensor), settings, name));
    if (fixture_.has(name + ".scale")) return {};
    const std::vector<float> whole = params_.floats(part.parameter);
    return dequantize(store_as(TensorFormat::fp16, part.name, tensor.shape,
                               std::span(whole).subspan(static_cast<std::size_t>(part.offset),
                                                        static_cast<std::size_t>(part.type.elements()))));
  }

 private:
  QuantizedTensor given_integer(QuantizedTensor tensor, const nlohmann::json& settings,
                                const std::string& name) const {
    const std::vector<std::int8_t> all = fixture_.codes(name + ".q");
    tensor.scales = halves_of(fixture_.floats(name + ".scale"));
    ProtectedColumns& fine = tensor.protected_columns;
    if (fixture_.has(name + ".awqg_start")) {
      for (const std::int32_t start : fixture_.ints(name + ".awqg_start")) fine.starts.push_back(start);
      std::ranges::sort(fine.starts);
      fine.size = settings.at("awq_lite_group_size");
      fine.bits = 8;
      fine.scales = halves_of(fixture_.floats(name + ".awqg_s_hi"));
    }
    const std::vector<bool> mask = fine.mask(tensor.columns());
    for (std::size_t i = 0; i < all.size(); ++i)
      (mask[i % static_cast<std::size_t>(tensor.columns())] ? fine.codes : tensor.codes).push_back(all[i]);
    if (fixture_.has(name + ".lqA_a")) {
      const std::vector<std::int64_t> left = fixture_.shape(name + ".lqA_a");
      tensor.correction = {left[1],
                           left[0] * left[1],
                           settings.at("lqer_asym_group"),
                           fixture_.codes(name + ".lqA_a"),
                           fixture_.codes(name + ".lqB_a"),
                           halves_of(fixture_.floats(name + ".lqAs_a")),
                           halves_of(fixture_.floats(name + ".lqBs_a"))};
    }
    return tensor;
  }
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
    const InputMoments& ours = moments_.at(*part.input);
    ASSERT_EQ(ours.rms.size(), columns);
    const double largest = *std::ranges::max_element(diagonal), widest = *std::ranges::max_element(rms);
    for (std::size_t i = 0; i < columns; ++i) {
      EXPECT_NEAR(ours.hessian[i * columns + i], diagonal[i], moments_tolerance * largest);
      EXPECT_NEAR(ours.rms[i], rms[i], moments_tolerance * widest);
    }
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST_F(Quant2014Golden, ChoicesCodesAndScalesOfEverySetting) {
  calibrate();
  for_settings([&](const std::string& name, const nlohmann::json& settings, const nlohmann::json& result) {
    std::size_t total = 0, mismatches = 0;
    for (const QuantizedTensor& tensor : quantize(settings)) {
      SCOPED_TRACE(tensor.name);
      const std::string theirs = name + "." + tensor.name;
      if (tensor.name.ends_with(".attn_gate_w") && tensor.format == TensorFormat::integer) {
        EXPECT_EQ(tensor.codes, fixture_.codes(theirs + ".gq"));
        EXPECT_EQ(values_of(tensor.scales), fixture_.floats(theirs + ".gs"));
        continue;
      }
      if (tensor.format != TensorFormat::integer) {
        if (fixture_.has(name + ".f16." + tensor.name)) {
          EXPECT_EQ(dequantize(tensor), fixture_.floats(name + ".f16." + tensor.name));
        }
        continue;
      }
      EXPECT_EQ(values_of(tensor.scales), fixture_.floats(theirs + ".scale"));
      const ProtectedColumns& fine = tensor.protected_columns;
      ASSERT_EQ(fixture_.has(theirs + ".awqg_start"), !fine.starts.empty());
      if (!fine.starts.empty()) {
        EXPECT_TRUE(std::ranges::is_permutation(fine.starts, fixture_.ints(theirs + ".awqg_start")));
        EXPECT_EQ(values_of(fine.scales), fixture_.floats(theirs + ".awqg_s_hi"));
      }
      if (fixture_.has(theirs + ".q")) {
        const std::vector<std::int8_t> wanted = fixture_.codes(theirs + ".q");
        mismatches += code_mismatches(all_codes(tensor), wanted);
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
    for (const QuantizedTensor& tensor : quantize(settings)) {
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

TEST_F(Quant2014Golden, LossOfTheGivenCodes) {
  int compared = 0;
  for_settings([&](const std::string& name, const nlohmann::json& settings, const nlohmann::json& result) {
    Weights weights;
    for (const ArtifactPart& part : parts_) {
      const std::vector<float> values = given(name, settings, part);
      if (values.empty()) return;  // this setting's codes are not all in the fixture
      put(weights, part, values);
    }
    for (const auto& [use, loss] :
         {std::pair{HeadUse::training, "train_loss"}, {HeadUse::scoring, "eval_loss"}}) {
      ModelRunner::Options options;
      options.layer_order = LayerOrderKind::looped;
      options.head = use;
      EXPECT_NEAR(mean_loss(weights, data_.ints("cu_seqlens"), options), result.at(loss).get<double>(),
                  loss_tolerance)
          << loss;
    }
    ++compared;
  });
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace mulligan::quant_2014_golden_test
