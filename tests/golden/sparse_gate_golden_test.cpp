// The sparse attention gate against the public code (fixture folder sparse_gate): alone, and inside one
// attention part built by the model's own stages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/model/elements/sparse_gate/config.h"
#include "framework/model/elements/stages.h"
#include "framework/model/qkv_projection.h"
#include "kernels/attention/op.h"
#include "kernels/concat_rows/op.h"
#include "kernels/matmul/op.h"
#include "tests/golden/golden_fixture.h"
#include "tests/golden/value_runner.h"

namespace mulligan::sparse_gate_golden_test {
namespace {

void expect_close(const std::vector<float>& ours, const std::vector<double>& theirs,
                  const std::string& what) {
  constexpr double tolerance = 1e-5;  // of the tensor's largest element: the manifest's for f32
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  double largest = 0, off = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::abs(theirs[i]));
    off = std::max(off, std::isfinite(ours[i]) ? std::abs(ours[i] - theirs[i]) : INFINITY);
  }
  EXPECT_LE(off, tolerance * largest) << what;
}

ModelConfig model_of(const nlohmann::json& options) {
  ModelConfig model;
  model.layers = 1;
  model.vocabulary = 2;
  model.width = options.at("d");
  model.heads = options.at("heads");
  model.kv_heads = options.at("kv");
  model.rope.dims = options.at("rope_dims");
  model.xsa_last_layers = options.at("xsa").get<bool>() ? 1 : 0;
  model.attention_gate = false;
  model.elements["sparse_gate.window"] = ConfigValue(options.at("window").get<std::int64_t>());
  model.elements["sparse_gate.scale"] = ConfigValue(options.at("scale").get<double>());
  resolve_model_defaults(model);
  return model;
}

class SparseGateGolden : public testing::TestWithParam<GoldenKernels> {
 protected:
  SparseGateGolden() : fixture_("sparse_gate"), backend_(make_golden_backend(GetParam())) {}

  GoldenFixture fixture_;
  std::unique_ptr<Backend> backend_;
};

TEST_P(SparseGateGolden, InsideAnAttentionPart) {
  ASSERT_FALSE(fixture_.manifest().at("cases").empty());
  for (const auto& [name, options] : fixture_.manifest().at("cases").items()) {
    SCOPED_TRACE(name);
    const auto tensor = [&, prefix = name + "."](const std::string& what) { return prefix + what; };
    const ModelConfig model = model_of(options);
    const std::int64_t tokens = options.at("T"), width = model.width;
    ValueRunner run(*backend_);
    const std::vector<ParameterLayout> layouts = parameter_layouts(model, MLG_F32);
    const ParameterValues parameters(run.tape(), layouts, true);
    const TensorType table(MLG_F32, {tokens, model.rope.dims / 2});
    const ForwardInputs inputs{Value{}, run.input("cu", {2}, MLG_I32), run.graph().external("cos", table),
                               run.graph().external("sin", table)};
    ForwardOptions forward;
    forward.row_length = tokens;
    QkvProjection projection(run.tape(), model, parameters, inputs, forward);
    const Value x = run.watched("x", {tokens, width});
    const ops::AttentionInputs in = projection(x, 0, 0);
    const Value heads = ops::attention(run.tape(), in.q, in.k, in.v, inputs.cu_seqlens);
    const Value y =
        mix_attention({run.tape(), model, parameters}, {run.tape(), 0, heads, in.v_again, in.gate});
    run.keep("y_after", y);
    const Value out = ops::linear(run.tape(), y, run.graph().slice(parameters("qo_bank"), 1),
                                  TensorType(MLG_F32, {tokens, width}));
    run.keep("out", out);
    run.tape().backward(out, run.input("upstream", {tokens, width}));
    run.prepare();

    const auto both = [&](const std::string& first, const std::string& second) {
      std::vector<float> bank = fixture_.floats(tensor(first));
      const std::vector<float> other = fixture_.floats(tensor(second));
      bank.insert(bank.end(), other.begin(), other.end());
      return bank;
    };
    run.set(master_name("qo_bank"), both("q_w", "out_w"));
    run.set(master_name("kv_bank"), both("k_w", "v_w"));
    run.set(master_name(block_parameter(0, "attn.q_gain")), fixture_.floats(tensor("q_gain")));
    run.set(master_name(block_parameter(0, "attn.attn_gate_w")), fixture_.floats(tensor("gate_w")));
    for (const char* input : {"x", "upstream"}) run.set(input, fixture_.floats(tensor(input)));
    run.set("cos", fixture_.floats("rope.cos"));
    run.set("sin", fixture_.floats("rope.sin"));
    run.set("cu", std::vector<std::int32_t>{0, static_cast<std::int32_t>(tokens)});
    run.run();

    expect_close(run.get("y_after"), fixture_.doubles(tensor("y_after")), "y_after");
    expect_close(run.get("out"), fixture_.doubles(tensor("out")), "out");
    expect_close(run.get("d x"), fixture_.doubles(tensor("grad_x")), "x");
    const auto gradient = [&](const std::string& parameter) { return run.get(gradient_name(parameter)); };
    expect_close(gradient(block_parameter(0, "attn.attn_gate_w")), fixture_.doubles(tensor("grad_gate_w")),
                 "gate weight");
    expect_close(gradient(block_parameter(0, "attn.q_gain")), fixture_.doubles(tensor("grad_q_gain")),
                 "q gain");
    const auto halves = [&](const std::string& bank, const std::string& first, const std::string& second) {
      const std::vector<float> all = gradient(bank);
      const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
      expect_close({all.begin(), middle}, fixture_.doubles(tensor("grad_" + first)), first);
      expect_close({middle, all.end()}, fixture_.doubles(tensor("grad_" + second)), second);
    };
    halves("qo_bank", "q_w", "out_w");
    halves("kv_bank", "k_w", "v_w");
  }
}

// The gate's own gradients, of an upstream at its result.
TEST_P(SparseGateGolden, Alone) {
  for (const auto& [name, options] : fixture_.manifest().at("cases").items()) {
    SCOPED_TRACE(name);
    const auto tensor = [&, prefix = name + "."](const std::string& what) { return prefix + what; };
    const ModelConfig model = model_of(options);
    const std::int64_t tokens = options.at("T"), width = model.width;
    const std::vector<std::int64_t> heads = {tokens, model.heads, model.head_width};
    ValueRunner run(*backend_);
    const Value x = run.watched("x", {tokens, width}), o = run.watched("y", heads),
                w = run.watched("w", fixture_.shape(tensor("gate_w")));
    const std::optional<HeadGate> gate = head_gate(model);
    ASSERT_TRUE(gate);
    EXPECT_EQ(gate->window, options.at("window").get<std::int64_t>());
    const Value wide = ops::concat_rows(run.tape(), std::vector{w}, model.heads, width);
    const Value logits = ops::linear(run.tape(), x, wide, TensorType(MLG_F32, {tokens, model.heads}));
    AttentionOutput output(run.tape(), 0, o, Value{}, logits);
    output.apply_gate(elements::sparse_gate::config_of(model).scale);
    const Value gated = output.value();
    run.keep("after", gated);
    run.tape().backward(gated, run.input("upstream", heads));
    run.prepare();
    run.set("x", fixture_.floats(tensor("x")));
    run.set("y", fixture_.floats(tensor("y_before")));
    run.set("w", fixture_.floats(tensor("gate_w")));
    run.set("upstream", fixture_.floats(tensor("upstream_y")));
    run.run();
    expect_close(run.get("after"), fixture_.doubles(tensor("y_after")), "y_after");
    expect_close(run.get("d x"), fixture_.doubles(tensor("alone.grad_x")), "x");
    expect_close(run.get("d y"), fixture_.doubles(tensor("alone.grad_y")), "y");
    expect_close(run.get("d w"), fixture_.doubles(tensor("alone.grad_w")), "w");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SparseGateGolden,
                         testing::Values(GoldenKernels::plain, GoldenKernels::fused, GoldenKernels::cuda),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace mulligan::sparse_gate_golden_test
