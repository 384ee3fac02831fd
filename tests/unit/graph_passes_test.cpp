// The passes that fuse activations, output scales and lanes: calls before and after, and all values that a graph keeps.
#include "framework/graph/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/graph/row_rules.h"
#include "kernels/axpby/op.h"
#include "kernels/lane_merge/op.h"
#include "kernels/leaky_relu_squared/op.h"
#include "kernels/matmul/op.h"
#include "kernels/residual_mix_norm/op.h"
#include "kernels/rms_norm/op.h"
#include "kernels/scaled_add_norm/op.h"
#include "kernels/skip_merge/op.h"
#include "tests/support/built_graph.h"

namespace mulligan::graph_passes_test {
namespace {

const TensorType rows(MLG_F32, {6, 8}), wide(MLG_F32, {6, 16}), vector_type(MLG_F32, {8});
const double eps = 1e-6;

// Expects equal results. Kernels that only the fused graph calls must be known as fused (row_rules.h) or be in `others`.
void expect_same_results(const Graph& plain, const Graph& fused, const Kernels& others = {}) {
  for (const Call& call : fused.calls()) {
    if (std::ranges::find(plain.calls(), call.kernel, &Call::kernel) == plain.calls().end() &&
        std::ranges::find(others, call.kernel) == others.end()) {
      EXPECT_TRUE(is_fused_core_kernel(call.kernel)) << call.kernel;
    }
  }
  const auto expected = run(plain), actual = run(fused);
  ASSERT_EQ(expected.size(), actual.size());
  for (const auto& [name, values] : expected) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(actual.at(name)[i], values[i], 2e-6 * std::max(1.0F, largest)) << name;
  }
}

// z = f(x W^T) V^T
struct Mlp : BuiltGraph {
  explicit Mlp(bool adapts = false) : BuiltGraph(true) {
    x = trained("x", rows);
    u = ops::linear(tape, x, trained("up", TensorType(MLG_F32, {16, 8})), wide);
    if (adapts)
      graph.call("axpby", {graph.external("adapter", wide), Value{}, u},
                 {{"alpha", 1.0}, {"beta", 0.0}, {"accumulate_y", 1.0}});
    y = ops::leaky_relu_squared(tape, u, 0.5);
    z = ops::linear(tape, y, trained("down", TensorType(MLG_F32, {8, 16})), rows);
    read(z, "z");
  }
  void finish() { tape.backward(z, graph.external("seed", rows)); }
  void fuse() { fuse_activations(graph, tape.fused().access(), 0); }
  Value x, u, y, z;
};

TEST(FuseActivations, TheMatmulsOnBothSidesTakeTheActivation) {
  Mlp plain, fused;
  plain.finish();
  fused.finish();
  fused.fuse();
  EXPECT_EQ(plain.kernels(), (Kernels{"matmul", "leaky_relu_squared_fwd", "matmul", "cast", "matmul",
                                      "matmul", "leaky_relu_squared_bwd", "matmul", "matmul"}));
  EXPECT_EQ(fused.kernels(), (Kernels{"linear_leaky_relu_squared_fwd", "matmul", "cast", "matmul",
                                      "linear_leaky_relu_squared_bwd", "matmul", "matmul"}));
  EXPECT_EQ(fused.only("linear_leaky_relu_squared_fwd").arguments[2], fused.u) << "the backward call reads u";
  expect_same_results(plain.graph, fused.graph);
}

TEST(FuseActivations, WhatNobodyReadsIsNotWritten) {
  Mlp scored, looked_at;
  scored.fuse();
  EXPECT_FALSE(scored.only("linear_leaky_relu_squared_fwd").arguments[2]);
  looked_at.graph.keep(looked_at.u);
  looked_at.fuse();
  EXPECT_EQ(looked_at.only("linear_leaky_relu_squared_fwd").arguments[2], looked_at.u);
}

TEST(FuseActivations, AnAdapterAReaderOfTheGradientAndTheSplitKeepCallsApart) {
  Mlp adapted(true);
  adapted.finish();
  const Kernels before = adapted.kernels();
  adapted.fuse();
  EXPECT_EQ(adapted.kernels(), before);

  Mlp read;
  read.finish();
  read.read(read.only("leaky_relu_squared_bwd").arguments[1], "dy");
  read.fuse();
  const Kernels kernels = read.kernels();
  EXPECT_EQ(std::ranges::count(kernels, "leaky_relu_squared_bwd"), 1);
  EXPECT_EQ(std::ranges::count(kernels, "linear_leaky_relu_squared_fwd"), 1);

  Mlp split;
  EXPECT_EQ(fuse_activations(split.graph, split.tape.fused().access(), 1), 1U);
  EXPECT_EQ(split.kernels()[1], "leaky_relu_squared_fwd");
}

// Two passes of one layer: r = r + s * (r W^T).
struct Layer : BuiltGraph {
  explicit Layer(bool trains_scale = true, bool looks = false) : BuiltGraph(true) {
    const TensorType bank(MLG_F32, {2, 8, 8});
    Value r = trained("x", rows);
    const Value scale = trains_scale ? trained("s", vector_type) : graph.external("s", vector_type);
    for (int pass = 0; pass < 2; ++pass) {
      const Value a = ops::linear(tape, r, graph.slice(trained("bank", bank), 1), rows);
      if (looks) graph.keep(a);
      r = ops::scaled_add_norm(tape, r, a, scale, 1.0, eps, pass == 0).sum;
    }
    read(r, "r");
    result = r;
  }
  void finish() { tape.backward(result, graph.external("seed", rows)); }
  Value result;
};

TEST(FuseOutputScales, ATrainedScaleGoesIntoTheWeightOnce) {
  Layer plain, fused;
  fuse_output_scales(fused.tape);
  EXPECT_EQ(plain.kernels(),
            (Kernels{"matmul", "scaled_add_norm_fwd", "matmul", "scaled_add_norm_fwd", "cast"}));
  EXPECT_EQ(fused.kernels(), (Kernels{"scale_rows_fwd", "matmul", "scaled_add_norm_fwd", "matmul",
                                      "scaled_add_norm_fwd", "cast"}));
  for (const Call& call : fused.graph.calls()) {
    if (call.kernel == "matmul") {
      EXPECT_EQ(call.arguments[1], fused.only("scale_rows_fwd").arguments[2]);
    }
    if (call.kernel == "scaled_add_norm_fwd") {
      EXPECT_FALSE(call.arguments[2]);
    }
  }
  plain.finish();
  fused.finish();
  EXPECT_EQ(fused.only("scale_rows_bwd").arguments.size(), 5U);
  expect_same_results(plain.graph, fused.graph, {"axpby"});  // sums the weight's gradient
}

TEST(FuseOutputScales, AScaleThatIsNotTrainedOrWhoseInputIsLookedAtStays) {
  for (const bool looks : {false, true}) {
    Layer built(looks, looks);
    const Kernels before = built.kernels();
    fuse_output_scales(built.tape);
    EXPECT_EQ(built.kernels(), before);
  }
}

// A block of lanes, and the ops after it.
struct Lanes : BuiltGraph {
  explicit Lanes(bool skips, bool looks = false) : BuiltGraph(true) {
    const ops::LaneParameters p{trained("attn", vector_type), trained("mlp", vector_type),
                                trained("rho", TensorType(MLG_F32, {2})),
                                trained("post", TensorType(MLG_F32, {2, 2}))};
    const Value x = trained("x", rows), x0 = trained("x0", rows);
    const auto block = [&](const ops::Lanes& lanes) {
      const ops::Lanes out = ops::lane_merge(tape, lanes, trained("a", rows), trained("m", rows), p);
      if (looks) graph.keep(out.attention), graph.keep(out.mlp);
      return out;
    };
    ops::Lanes lanes = block({x, x});
    if (skips)
      lanes.attention =
          ops::skip_merge(tape, lanes.attention, x0, trained("w", vector_type), trained("g", vector_type));
    const Value n0 = ops::residual_mix_norm(tape, lanes.attention, x0,
                                            trained("mix", TensorType(MLG_F32, {2, 8})), 0.5, eps, false)
                         .norm;
    const Value n1 = ops::rms_norm(tape, lanes.mlp, 0.5, eps);
    lanes = ops::lane_merge(tape, lanes, n0, n1, p);
    if (looks) graph.keep(lanes.attention), graph.keep(lanes.mlp);
    norm = ops::rms_norm(tape, ops::add(tape, lanes.attention, lanes.mlp, 0.5, 0.5), 1.0, eps);
    read(norm, "n");
  }
  void finish() { tape.backward(norm, graph.external("seed", rows)); }
  Value norm;
};

TEST(FuseLanes, WhatStandsBehindABlockIsOneCall) {
  for (const bool skips : {false, true}) {
    SCOPED_TRACE(skips);
    Lanes plain(skips), fused(skips);
    fuse_lanes(fused.tape);
    Kernels before = {"lane_merge_fwd", "skip_merge_fwd", "residual_mix_norm_fwd", "rms_norm_fwd",
                      "lane_merge_fwd", "axpby",          "rms_norm_fwd",          "cast"};
    if (!skips) before.erase(before.begin() + 1);
    EXPECT_EQ(plain.kernels(), before);
    EXPECT_EQ(fused.kernels(), (Kernels{"lane_chain_fwd", "lane_mean_norm_fwd", "cast"}));
    plain.finish();
    fused.finish();
    expect_same_results(plain.graph, fused.graph);
  }
  Lanes looked_at(true, true);  // lanes are still made
  fuse_lanes(looked_at.tape);
  EXPECT_EQ(looked_at.kernels(),
            (Kernels{"lane_merge_fwd", "lane_chain_fwd", "lane_merge_fwd", "lane_mean_norm_fwd", "cast"}));
}

// A weighted sum is not a mean. Without x0 in the lanes, their mean shares its gradient (fuse_residuals).
TEST(FuseLanes, AnotherSumAndTheMeanOfLanesWithoutMixesStayAsTheyAre) {
  for (const bool mixes : {true, false}) {
    SCOPED_TRACE(mixes);
    BuiltGraph built(true);
    const ops::LaneParameters p{built.trained("attn", vector_type), built.trained("mlp", vector_type),
                                built.trained("rho", TensorType(MLG_F32, {2})),
                                built.trained("post", TensorType(MLG_F32, {2, 2}))};
    const Value x = built.trained("x", rows), mix = built.trained("mix", TensorType(MLG_F32, {2, 8}));
    const Value a = mixes ? ops::residual_mix_norm(built.tape, x, x, mix, 0.5, eps, false).norm : x;
    const ops::Lanes out = ops::lane_merge(built.tape, {x, x}, a, x, p);
    const Value sum = ops::add(built.tape, out.attention, out.mlp, 0.5, mixes ? 0.25 : 0.5);
    ops::rms_norm(built.tape, sum, 1.0, eps);
    const Kernels before = built.kernels();
    fuse_lanes(built.tape);
    EXPECT_EQ(built.kernels(), before);
  }
}

}  // namespace
}  // namespace mulligan::graph_passes_test
