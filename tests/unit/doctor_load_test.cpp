// D03, D04, D08: sound weights files, and files with a planted fault.
#include "tests/support/sentence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string_view>

#include "framework/checkpoint/float_formats.h"
#include "framework/core/philox.h"
#include "framework/plugin/backend.h"
#include "tests/support/plugins.h"
#include "tests/support/scratch_folder.h"
#include "tools/doctor/load_checks.h"

namespace mulligan::doctor::doctor_load_test {
namespace {

ModelConfig small_model() {
  ModelConfig model;
  model.family = ModelFamily::qwen2;
  model.vocabulary = 40, model.layers = 2, model.width = 24, model.heads = 6, model.kv_heads = 2;
  model.head_width = 10, model.mlp_hidden = 18;
  resolve_model_defaults(model);
  return model;
}

// A weights file with what the test changes.
class WeightsFile {
 public:
  explicit WeightsFile(DType type = MLG_BF16, const ModelConfig& model = small_model())
      : type_(type), specs_(model_parameters(model)) {
    for (const ParameterSpec& spec : specs_) {
      std::vector<float> values(static_cast<std::size_t>(spec.type.elements()));
      const PhiloxStream stream(5, spec.name);
      stream.fill_normal(values, spec.matrix ? 0.05 : 1.0);
      shapes_.push_back({spec.type.dims.begin(), spec.type.dims.begin() + spec.type.rank});
      names_.push_back(spec.name);
      bytes_.push_back(encode_weights(values, type));
    }
  }
  const std::vector<ParameterSpec>& specs() const { return specs_; }
  std::size_t index(const std::string& name) const {
    return static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
  }
  void remove(const std::string& name) {
    const auto i = static_cast<std::ptrdiff_t>(index(name));
    names_.erase(names_.begin() + i), shapes_.erase(shapes_.begin() + i), bytes_.erase(bytes_.begin() + i);
  }
  void rename(const std::string& name, const std::string& other) { names_[index(name)] = other; }
  std::vector<std::int64_t>& shape(const std::string& name) { return shapes_[index(name)]; }
  // What the header calls the bytes.
  void label(DType type) { type_ = type; }

  SafetensorsFile write() {
    std::vector<StoredTensor> tensors;
    for (std::size_t i = 0; i < names_.size(); ++i)
      tensors.push_back({names_[i], type_, shapes_[i], bytes_[i]});
    const auto path = folder_.path() / fmt::format("{}.safetensors", ++written_);
    write_safetensors(path, tensors);
    return SafetensorsFile(path);
  }
  // As a right loader leaves it on the device.
  std::vector<LoadedTensor> loaded(DType as = MLG_F32) const {
    std::vector<LoadedTensor> result;
    for (std::size_t i = 0; i < names_.size(); ++i)
      result.push_back({names_[i], as, encode_weights(decode_weights(bytes_[i], type_), as)});
    return result;
  }

 private:
  test_support::ScratchFolder folder_;
  DType type_;
  std::vector<ParameterSpec> specs_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<std::vector<std::byte>> bytes_;
  int written_ = 0;
};

constexpr const char* q_bias = "model.layers.0.self_attn.q_proj.bias";
constexpr const char* o_weight = "model.layers.1.self_attn.o_proj.weight";

void expect_fail(const Finding& finding, const std::string& words) {
  EXPECT_EQ(finding.verdict, CheckOutcome::fail) << finding.id << " " << finding.measured;
  EXPECT_TRUE(contains(finding.message, words));
  EXPECT_FALSE(finding.hint.empty());
}

TEST(DoctorLoad, RightFilesPassInEveryDtype) {
  for (const DType type : {MLG_F32, MLG_BF16, MLG_F16}) {
    WeightsFile weights(type);
    const SafetensorsFile file = weights.write();
    EXPECT_EQ(check_coverage(file, weights.specs()).verdict, CheckOutcome::pass);
    EXPECT_EQ(check_architecture(file, small_model(), {}).verdict, CheckOutcome::pass);
    for (const DType as : {MLG_F32, MLG_BF16}) {
      const Finding bits = check_source_bits(file, weights.loaded(as));
      EXPECT_EQ(bits.verdict, CheckOutcome::pass) << bits.message;
      EXPECT_EQ(bits.message + bits.hint, "");
    }
  }
}

TEST(DoctorLoad, CoverageNamesWhatIsMissingExtraTransposedOrOfAnotherShape) {
  WeightsFile missing;
  missing.remove(q_bias);
  expect_fail(check_coverage(missing.write(), missing.specs()), std::string("1 missing (") + q_bias);
  WeightsFile extra;
  extra.rename(q_bias, "model.layers.0.self_attn.o_proj.bias");
  expect_fail(check_coverage(extra.write(), extra.specs()), "bias tensors are present");
  WeightsFile transposed;
  transposed.shape(o_weight) = {60, 24};
  expect_fail(check_coverage(transposed.write(), transposed.specs()),
              std::string("1 transposed (") + o_weight);
  WeightsFile shaped;
  shaped.shape(o_weight) = {12, 120};
  expect_fail(check_coverage(shaped.write(), shaped.specs()), "1 of another shape");
}

// A file's header says F16 of BF16 bytes, and the loader believes it: only the numbers tell.
TEST(DoctorLoad, AMislabelledDtypeFailsAlthoughTheLoaderBelievedIt) {
  for (const auto& [stored, said] : {std::pair{MLG_BF16, MLG_F16}, std::pair{MLG_F16, MLG_BF16}}) {
    WeightsFile weights(stored);
    weights.label(said);
    const Finding finding = check_source_bits(weights.write(), weights.loaded());
    expect_fail(finding, "the header mislabels the dtype");
    EXPECT_TRUE(contains(finding.message, "re-decoded as " + std::string(stored_name(stored))));
  }
}

// The weights were loaded from a mislabelled copy; the source at hand is right.
TEST(DoctorLoad, BitsThatMatchUnderAnotherDtypeNameIt) {
  WeightsFile weights(MLG_BF16);
  const SafetensorsFile source = weights.write();
  weights.label(MLG_F16);
  expect_fail(check_source_bits(source, weights.loaded()), "re-decoding the source as F16 matches");
}

TEST(DoctorLoad, OtherBitsAreAnotherCheckpointOrATranspose) {
  WeightsFile weights(MLG_F32);
  const SafetensorsFile source = weights.write();
  std::vector<LoadedTensor> loaded = weights.loaded();
  LoadedTensor& tensor = loaded[weights.index(o_weight)];
  std::vector<float> values = decode_weights(tensor.bytes, MLG_F32), turned(values.size());
  for (std::size_t row = 0; row < 24; ++row) {
    for (std::size_t column = 0; column < 60; ++column) turned[column * 24 + row] = values[row * 60 + column];
  }
  tensor.bytes = encode_weights(turned, MLG_F32);
  expect_fail(check_source_bits(source, loaded), "it is the source's transpose");
  for (float& value : values) value += 1;
  tensor.bytes = encode_weights(values, MLG_F32);
  const Finding finding = check_source_bits(source, loaded);
  expect_fail(finding, "another checkpoint or layout");
  EXPECT_TRUE(contains(finding.measured, "1 tensors differ"));
}

TEST(DoctorLoad, OneWrongBitIsFound) {
  WeightsFile weights(MLG_F32);
  const SafetensorsFile source = weights.write();
  std::vector<LoadedTensor> loaded = weights.loaded();
  EXPECT_EQ(check_source_bits(source, loaded).verdict, CheckOutcome::pass);
  loaded[weights.index(o_weight)].bytes[100 * 4] ^= std::byte{1};
  EXPECT_EQ(check_source_bits(source, loaded).verdict, CheckOutcome::fail);
}

TEST(DoctorLoad, NothingLoadedIsSkippedNotPassed) {
  EXPECT_EQ(check_source_bits(WeightsFile().write(), {}).verdict, CheckOutcome::skip);
}

TEST(DoctorLoad, ArchitectureEvidence) {
  ModelConfig record;
  record.vocabulary = 40, record.layers = 2, record.width = 24, record.heads = 6;
  resolve_model_defaults(record);
  expect_fail(check_architecture(WeightsFile().write(), record, {}),
              "its tensors are qwen2-shaped (q_proj.bias)");
  WeightsFile of_record(MLG_F32, record);
  EXPECT_EQ(check_architecture(of_record.write(), record, {}).verdict, CheckOutcome::pass);
  expect_fail(check_architecture(of_record.write(), small_model(), {}), "those of the record");
  WeightsFile llama;
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* letter : {"q", "k", "v"})
      llama.remove(fmt::format("model.layers.{}.self_attn.{}_proj.bias", layer, letter));
  }
  expect_fail(check_architecture(llama.write(), small_model(), {}), "llama-shaped");
  WeightsFile qwen3;
  qwen3.rename(q_bias, "model.layers.0.self_attn.q_norm.weight");
  expect_fail(check_architecture(qwen3.write(), small_model(), {}), "qwen3-shaped (q_norm)");
  ModelConfig untied = small_model();
  untied.tied_head = false;
  expect_fail(check_architecture(WeightsFile().write(), untied, {}), "has no lm_head.weight");
  expect_fail(check_architecture(WeightsFile(MLG_BF16, untied).write(), small_model(), {}), "ties the head");
  ModelConfig heads = small_model();
  heads.kv_heads = 3;
  expect_fail(check_architecture(WeightsFile().write(), heads, {}),
              "kv_heads * head_width = 30, the file's tensors 20");
  ModelConfig layers = small_model();
  layers.layers = 3;
  expect_fail(check_architecture(WeightsFile().write(), layers, {}), "layers = 3, the file's tensors 2");
}

TEST(DoctorLoad, ConfigJsonIsHeldAgainstTheModel) {
  PublishedModel published{small_model(), "bfloat16"};
  EXPECT_EQ(check_architecture(WeightsFile().write(), small_model(), published).verdict, CheckOutcome::pass);
  const Finding dtype = check_architecture(WeightsFile(MLG_F16).write(), small_model(), published);
  EXPECT_EQ(dtype.verdict, CheckOutcome::warn);
  EXPECT_TRUE(contains(dtype.message, "config.json says bfloat16"));
  published.model.rope.base = 1e6;
  expect_fail(check_architecture(WeightsFile().write(), small_model(), published),
              "model.rope.base is 10000, config.json says 1000000");
}

class PublishedConfig : public ::testing::Test {
 protected:
  std::string sentence_of(const std::string& text) {
    std::ofstream(folder_.path() / "config.json") << text;
    return refusal_of(ExitCode::bad_data, [&] { read_qwen2_config(folder_.path() / "config.json"); });
  }
  test_support::ScratchFolder folder_;
  const std::string sizes_ =
      R"("vocab_size": 97, "hidden_size": 60, "intermediate_size": 52, "num_hidden_layers": 3,
      "num_attention_heads": 6)";
};

TEST_F(PublishedConfig, IsReadWithItsDefaults) {
  EXPECT_EQ(sentence_of("{\"model_type\": \"qwen2\", " + sizes_ + "}"), "");
  const ModelConfig model = read_qwen2_config(folder_.path() / "config.json").model;
  EXPECT_EQ(model.kv_heads, 6);
  EXPECT_EQ(model.head_width, 10);
  EXPECT_EQ(model.norm_eps, 1e-6);
  EXPECT_EQ(model.rope.base, 1e4);
  EXPECT_FALSE(model.tied_head);
  EXPECT_EQ(model.softcap, 0);
  EXPECT_EQ(
      sentence_of("{\"model_type\": \"qwen2\", \"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": "
                  "\"default\"}, " +
                  sizes_ + "}"),
      "");
  EXPECT_EQ(read_qwen2_config(folder_.path() / "config.json").model.rope.base, 5e5);
}

TEST_F(PublishedConfig, WhatCannotBeComputedIsRefusedWithItsKey) {
  const auto with = [&](const std::string& more) {
    return sentence_of("{\"model_type\": \"qwen2\", " + sizes_ + more + "}");
  };
  const auto says = [](const std::string& sentence, const std::string& words) {
    EXPECT_TRUE(contains(sentence, words));
  };
  says(sentence_of(""), "is not a JSON object");
  says(sentence_of("[1]"), "is not a JSON object");
  says(sentence_of("{\"model_type\": \"llama\", " + sizes_ + "}"), "'model_type' as \"llama\"");
  says(sentence_of("{\"model_type\": \"qwen2\"}"), "has no 'vocab_size'");
  says(sentence_of("{" + sizes_ + "}"), "'model_type' as nothing");
  says(with(", \"hidden_act\": \"gelu\""), "'hidden_act'");
  says(with(", \"rope_scaling\": {\"type\": \"yarn\"}"), "'rope_scaling'");
  says(with(", \"rope_parameters\": {\"rope_type\": \"yarn\"}"), "'rope_type'");
  says(with(", \"use_sliding_window\": true"), "'use_sliding_window'");
  says(with(", \"attention_dropout\": 0.1"), "'attention_dropout'");
  says(with(", \"num_key_value_heads\": 4"), "'num_key_value_heads'");
  says(with(", \"num_key_value_heads\": 0"), "whole number");
  says(with(", \"head_dim\": 7"), "'head_dim'");
  says(with(", \"head_dim\": \"ten\""), "'head_dim'");
  says(with(", \"rms_norm_eps\": -1"), "'rms_norm_eps'");
  says(with(", \"rms_norm_eps\": \"small\""), "'rms_norm_eps'");
  says(with(", \"vocab_size\": 99999999999999999999"), "'vocab_size'");
  says(with(", \"tie_word_embeddings\": 1"), "'tie_word_embeddings'");
}

}  // namespace
}  // namespace mulligan::doctor::doctor_load_test
