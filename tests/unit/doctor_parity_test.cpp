// Parity (D12): two healthy backends agree op by op; faults in an op, in weights or in the loss are named
// where they are.
#include "tools/doctor/parity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/checkpoint/float_formats.h"
#include "tests/support/plugins.h"
#include "tests/support/scratch_folder.h"
#include "tools/doctor/parity_side.h"

namespace mulligan::doctor::doctor_parity_test {
namespace {

ModelConfig qwen2() {
  ModelConfig model;
  model.family = ModelFamily::qwen2;
  model.vocabulary = 53, model.layers = 2, model.width = 24, model.heads = 6, model.kv_heads = 2;
  model.head_width = 10, model.mlp_hidden = 18;
  resolve_model_defaults(model);
  return model;
}

ModelConfig record() {
  ModelConfig model;
  model.vocabulary = 64, model.layers = 4, model.width = 32, model.heads = 4, model.kv_heads = 2,
  model.mlp_hidden = 48;
  model.rope.dims = 4;
  model.loop = {1, 2, 1, 0.5};
  model.lanes.parallel_start = 3;
  resolve_model_defaults(model);
  return model;
}

ParityWeights random_weights() {
  return [](const ParameterSpec& spec) { return large_random_weights(spec, 5); };
}

std::unique_ptr<Backend> emulated() {
  return make_plugin<Backend>(PluginKind::backend, "cuda", "device = \"emulated\"");
}

ParityReport compare(const ModelConfig& model, Backend& tested, DType compute = MLG_F32) {
  const auto reference = make_cpu_backend(1);
  return compare_backends(model, random_weights(), random_parity_inputs(37, model.vocabulary, 3), *reference,
                          tested, compute);
}

bool names(const ParityReport& report, const std::string& name) {
  return std::ranges::any_of(report.taps, [&](const ParityTap& tap) { return tap.name == name; });
}

TEST(DoctorParity, HealthyBackendsAgree) {
  for (const ModelConfig& model : {qwen2(), record()}) {
    const auto tested = emulated();
    const ParityReport report = compare(model, *tested);
    const Finding finding = judge_parity(report, "cpu");
    EXPECT_EQ(finding.verdict, CheckOutcome::pass) << finding.message << "\n" << parity_text(report);
    EXPECT_FALSE(report.first.has_value());
    EXPECT_NEAR(report.loss, report.reference_loss, 1e-4);
    EXPECT_TRUE(names(report, "logits"));
    EXPECT_TRUE(names(report, "nll"));
  }
}

TEST(DoctorParity, TheSameBackendIsTheSameBitForBit) {
  const auto tested = make_cpu_backend(2);
  const ParityReport report = compare(qwen2(), *tested);
  for (const ParityTap& tap : report.taps) {
    EXPECT_EQ(tap.difference, 0) << tap.name;
    EXPECT_EQ(tap.alone, 0) << tap.name;
    EXPECT_EQ(tap.cosine, 1) << tap.name;
  }
  EXPECT_EQ(report.loss, report.reference_loss);
  EXPECT_EQ(report.loss, report.loss_of_tested_logits);
}

TEST(DoctorParity, Bf16IsWithinItsToleranceAndNotEqual) {
  const auto tested = make_cpu_backend(1);
  const ParityReport report = compare(qwen2(), *tested, MLG_BF16);
  EXPECT_EQ(judge_parity(report, "cpu").verdict, CheckOutcome::pass) << judge_parity(report, "cpu").message;
  EXPECT_GT(report.taps.back().difference, 0);
}

TEST(DoctorParity, EveryPointOfTheFamilyIsNamedInOrder) {
  const auto tested = make_cpu_backend(1);
  const ParityReport report = compare(qwen2(), *tested);
  std::vector<std::string> found;
  for (const ParityTap& tap : report.taps) found.push_back(tap.name);
  std::size_t at = 0;
  for (const char* name : {"embed",
                           "layers.0.norm1",
                           "layers.0.q",
                           "layers.0.q_rope",
                           "layers.0.k",
                           "layers.0.k_rope",
                           "layers.0.v",
                           "layers.0.attn_out",
                           "layers.0.o_proj",
                           "layers.0.resid1",
                           "layers.0.norm2",
                           "layers.0.gate",
                           "layers.0.up",
                           "layers.0.act",
                           "layers.0.down",
                           "layers.0.resid2",
                           "layers.1.norm1",
                           "layers.1.resid2",
                           "final_norm",
                           "logits",
                           "nll"}) {
    while (at < found.size() && found[at] != name) ++at;
    ASSERT_LT(at, found.size()) << name << " is missing, or not in its place";
  }
}

// A dump that the cpu backend itself made, in which a test changes what it likes.
class DumpTest : public ::testing::Test {
 protected:
  DumpTest() : backend_(make_cpu_backend(1)), inputs_(random_parity_inputs(29, qwen2().vocabulary, 4)) {
    const ModelConfig model = qwen2();
    const auto layouts = parameter_layouts(model, MLG_F32);
    const ParityGraph graph(model, layouts, 29, {}, "value");
    ParityMemory memory(*backend_);
    memory.fill(graph, model, layouts, random_weights(), inputs_, MLG_F32);
    ParitySide side(memory, graph, "dump");
    for (std::size_t i = 0; i < graph.graph().calls().size(); ++i) side.run(i);
    for (std::size_t i = 0; i < graph.graph().calls().size(); ++i) {
      if (const Value value = graph.named(graph.label(i)))
        values_.emplace_back(graph.label(i), side.whole(value));
    }
  }

  std::vector<float>& value(const std::string& name) {
    return std::ranges::find(values_, name, &std::pair<std::string, std::vector<float>>::first)->second;
  }

  SafetensorsFile write() {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<StoredTensor> tensors;
    bytes.reserve(values_.size() + 2);
    const auto add = [&](const std::string& name, StoredType type, std::vector<std::byte> content) {
      bytes.push_back(std::move(content));
      const auto count = static_cast<std::int64_t>(bytes.back().size() / stored_size(type));
      tensors.push_back({name, type, {count}, bytes.back()});
    };
    const auto ints = [](const std::vector<std::int32_t>& numbers) {
      const auto raw = std::as_bytes(std::span(numbers));
      return std::vector<std::byte>(raw.begin(), raw.end());
    };
    add("tokens", StoredType::i32, ints(inputs_.tokens));
    if (with_targets_) add("targets", StoredType::i32, ints(inputs_.targets));
    add("cu_seqlens", StoredType::i32, ints(inputs_.cu_seqlens));
    for (const auto& [name, numbers] : values_)
      add("run1.tap." + name, StoredType::f32, encode_weights(numbers, StoredType::f32));
    write_safetensors(folder_.path() / "dump.safetensors", tensors);
    return SafetensorsFile(folder_.path() / "dump.safetensors");
  }

  ParityReport compare(const ParityWeights& weights, bool inject) {
    return compare_with_dump(qwen2(), weights, write(), *backend_, MLG_F32, inject);
  }
  // The name of the first diverging op; "" where there is none.
  static std::string first(const ParityReport& report) {
    return report.first ? report.taps[*report.first].name : "";
  }
  std::string refusal() {
    try {
      compare(random_weights(), false);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      return error.what();
    }
    return "";
  }

  test_support::ScratchFolder folder_;
  std::unique_ptr<Backend> backend_;
  ParityInputs inputs_;
  bool with_targets_ = true;
  std::vector<std::pair<std::string, std::vector<float>>> values_;
};

TEST_F(DumpTest, ItsOwnValuesAgree) {
  for (const bool targets : {false, true}) {
    with_targets_ = targets;
    for (const bool inject : {false, true}) {
      const ParityReport report = compare(random_weights(), inject);
      EXPECT_EQ(judge_parity(report, "a file").verdict, CheckOutcome::pass)
          << judge_parity(report, "a file").message;
      EXPECT_GE(report.taps.size(), 30u);
      EXPECT_EQ(names(report, "nll"), targets);
    }
  }
}

// Weights that lack something: the op that reads them is named, with the file's values in place and without.
TEST_F(DumpTest, AFaultInTheWeightsIsNamedAtItsOp) {
  const auto fault = [&](const std::string& parameter, auto&& change) {
    return [=](const ParameterSpec& spec) {
      std::vector<float> values = large_random_weights(spec, 5);
      if (spec.name == parameter) change(values);
      return values;
    };
  };
  const auto zeros = [](std::vector<float>& values) { std::ranges::fill(values, 0.0F); };
  const auto ones = [](std::vector<float>& values) { std::ranges::fill(values, 1.0F); };
  const auto transpose = [](std::vector<float>& values) {
    std::vector<float> turned(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) turned[(i % 60) * 24 + i / 60] = values[i];
    values = turned;
  };
  const auto check = [&](const ParityWeights& weights, const std::string& name) {
    for (const bool inject : {false, true}) {
      const ParityReport report = compare(weights, inject);
      EXPECT_EQ(first(report), name) << parity_text(report);
      const Finding finding = judge_parity(report, "a file");
      EXPECT_EQ(finding.verdict, CheckOutcome::fail);
      EXPECT_NE(finding.message.find("first diverging op: " + name + " ("), std::string::npos)
          << finding.message;
    }
  };
  check(fault("model.layers.1.self_attn.q_proj.bias", zeros), "layers.1.q");
  check(fault("model.layers.0.self_attn.v_proj.bias", zeros), "layers.0.v");
  check(fault("model.layers.1.self_attn.o_proj.weight", transpose), "layers.1.o_proj");
  check(fault("model.layers.0.post_attention_layernorm.weight", ones), "layers.0.norm2");
  check(fault("model.norm.weight", ones), "final_norm");
}

// Values of another program that does one thing otherwise: only that point is off when later ones start from
// the file's.
TEST_F(DumpTest, WithInjectionOnlyTheChangedPointIsOff) {
  std::vector<float>& rotated = value("layers.1.q_rope");
  rotated[7 * 60 + 3] += 1;
  const ParityReport report = compare(random_weights(), true);
  EXPECT_EQ(first(report), "layers.1.q_rope");
  EXPECT_EQ(report.taps[*report.first].position, 7);
  // What follows is computed from the changed values, so it differs from the file as well.
  const auto later = std::ranges::find(report.taps, "layers.1.attn_out", &ParityTap::name);
  ASSERT_NE(later, report.taps.end());
  EXPECT_GT(later->difference, report.tolerance.op);
  const auto after = std::ranges::find(report.taps, "layers.1.resid2", &ParityTap::name);
  EXPECT_LE(after->difference, report.tolerance.op);
}

TEST_F(DumpTest, NumbersThatAreNoneAreFound) {
  value("layers.0.up")[5] = std::nanf("");
  EXPECT_EQ(first(compare(random_weights(), false)), "layers.0.up");
}

TEST_F(DumpTest, FilesThatCannotBeComparedAreRefused) {
  const auto says = [](const std::string& sentence, const std::string& words) {
    EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
  };
  inputs_.tokens[3] = 53;
  says(refusal(), "holds the token 53 in 'tokens'");
  inputs_.tokens[3] = 0;
  inputs_.targets[3] = 53;
  says(refusal(), "holds the token 53 in 'targets'");
  inputs_.targets.pop_back();
  says(refusal(), "'targets' as I32 of 28 elements");
  inputs_.targets.push_back(0);
  inputs_.targets[3] = -1;
  inputs_.cu_seqlens = {0, 30};
  says(refusal(), "'cu_seqlens'");
  inputs_.cu_seqlens = {0, 20, 10, 29};
  says(refusal(), "'cu_seqlens'");
  inputs_.cu_seqlens = {0, 29};
  value("layers.0.up").pop_back();
  says(refusal(), "'run1.tap.layers.0.up'");
  values_.clear();
  says(refusal(), "holds no value of this forward pass");
  inputs_.tokens.clear();
  says(refusal(), "'tokens'");
}

// The three losses tell a wrong cross entropy from a wrong forward pass.
TEST(DoctorParity, ThreeLosses) {
  const auto tested = make_cpu_backend(1);
  ParityReport report = compare(qwen2(), *tested);
  report.loss += 0.5;
  EXPECT_NE(judge_parity(report, "cpu").message.find("the cross entropy of the same logits"),
            std::string::npos);
  report.loss_of_tested_logits += 0.5;
  EXPECT_NE(judge_parity(report, "cpu").message.find("no op is the cause alone"), std::string::npos);
  report.loss = std::nan("");
  EXPECT_EQ(judge_parity(report, "cpu").verdict, CheckOutcome::fail);
}

}  // namespace
}  // namespace mulligan::doctor::doctor_parity_test
