// What the golden tests of quantisation share: a whole model's weights, calibration and losses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mulligan/half.hpp>

#include "framework/artifact/quantize_model.h"
#include "framework/plugin/quantizer.h"
#include "tests/golden/golden_fixture.h"
#include "tests/golden/golden_model.h"
#include "tests/support/model_runner.h"

namespace mulligan {

// Tolerances of the fixtures' README, section 11, and of the manifests.
constexpr double moments_tolerance = 1e-4;  // of the tensor's largest element; ours are f32
constexpr double mismatch_share = 1e-3;     // of codes next to a rounding boundary, with f32 moments
constexpr double loss_tolerance = 2e-5;

inline std::vector<float> values_of(std::span<const std::uint16_t> halves) {
  std::vector<float> values;
  for (const std::uint16_t bits : halves) values.push_back(sdk::half_value(bits));
  return values;
}

inline std::vector<std::uint16_t> halves_of(std::span<const float> values) {
  std::vector<std::uint16_t> halves;
  for (const float value : values) halves.push_back(sdk::half_bits(value));
  return halves;
}

// How many codes differ, which they may do by 1.
inline std::size_t code_mismatches(std::span<const std::int8_t> ours, std::span<const std::int8_t> theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    EXPECT_LE(std::abs(ours[i] - theirs[i]), 1);
    if (ours[i] != theirs[i]) ++count;
  }
  return count;
}

class QuantGolden : public testing::Test {
 protected:
  using Weights = std::map<std::string, std::vector<float>>;  // by parameter

  // `prefix`: of the names of the whole model in `fixture`. `model`: the folder of its weights and tokens.
  QuantGolden(const std::string& fixture, std::string prefix, const std::string& model,
              ModelConfig (*config)(const nlohmann::json&))
      : fixture_(fixture),
        prefix_(std::move(prefix)),
        data_(model),
        params_(model, "params.safetensors"),
        model_(config(data_.manifest().at("config"))),
        parts_(artifact_parts(model_)),
        backend_(make_test_backend()) {}

  // Moments of the fixture's calibration batches, two rows per forward pass.
  void calibrate() {
    const std::vector<std::int64_t> shape = fixture_.shape(prefix_ + "calib_tokens");  // [batches, rows, T]
    const std::vector<std::int32_t> tokens = fixture_.ints(prefix_ + "calib_tokens");
    TensorStore store(*backend_);
    const auto layouts = parameter_layouts(model_, MLG_F32);
    Calibrator calibrator(store, model_, layouts, {shape[1], shape[2], shape[2] * 2});
    for (const ParameterLayout& layout : layouts) {
      // Calibration goes as far as the final norm: what the head alone reads is not there.
      if (store.contains(master_name(layout.spec.name)))
        store.upload(master_name(layout.spec.name), params_.floats(layout.spec.name));
    }
    const auto batch = static_cast<std::size_t>(shape[1] * shape[2]);
    for (std::size_t first = 0; first < tokens.size(); first += batch)
      calibrator.add(std::span(tokens).subspan(first, batch));
    for (const ArtifactPart& part : parts_) {
      if (part.input) moments_.try_emplace(*part.input, calibrator.moments(*part.input));
    }
  }

  // After calibrate().
  std::vector<QuantizedTensor> quantize(std::span<const QuantizeTensorRow> rows,
                                        const std::string& options) const {
    const auto quantizer = make_plugin<Quantizer>(MLG_QUANTIZER, "gptq", options);
    QuantizeSources sources;
    sources.weights = [this](const std::string& parameter) { return params_.floats(parameter); };
    sources.moments = [this](const TapPoint& point) { return moments_.at(point); };
    sources.quantizer = quantizer.get();
    return quantize_model(model_, rows, sources);
  }

  static QuantizeTensorRow row(const char* match, TensorFormat format, std::int64_t bits = 0,
                               double clip = 0) {
    return {match, format, bits, clip, {}};
  }

  // An int tensor of the part without codes and scales.
  static QuantizedTensor empty_tensor(const ArtifactPart& part) {
    QuantizedTensor tensor;
    tensor.name = part.name;
    tensor.shape.assign(part.type.dims.begin(), part.type.dims.begin() + part.type.rank);
    tensor.format = TensorFormat::integer;
    tensor.bits = 8;
    return tensor;
  }

  static void put(Weights& weights, const ArtifactPart& part, const std::vector<float>& values) {
    std::vector<float>& whole = weights[part.parameter];
    whole.resize(std::max(whole.size(), static_cast<std::size_t>(part.offset) + values.size()));
    std::ranges::copy(values, whole.begin() + part.offset);
  }

  double mean_loss(const Weights& weights, const std::vector<std::int32_t>& segments,
                   ModelRunner::Options options) const {
    const std::vector<std::int32_t> tokens = data_.ints("tokens");
    options.gradients = false;
    options.segments = segments.size();
    ModelRunner runner(*backend_, model_, std::ssize(tokens), options);
    for (const auto& [name, values] : weights) runner.set_parameter(name, values);
    runner.run(tokens, data_.ints("targets"), segments);
    return runner.mean_loss();
  }

  GoldenFixture fixture_;
  std::string prefix_;
  GoldenFixture data_, params_;
  ModelConfig model_;
  std::vector<ArtifactPart> parts_;
  std::unique_ptr<Backend> backend_;
  std::map<TapPoint, InputMoments> moments_;
};

}  // namespace mulligan
