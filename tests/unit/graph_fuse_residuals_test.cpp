// The pass that joins what stands between two blocks: which calls it joins, and that the model computes the same with it.
#include "framework/graph/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "framework/graph/graph_recorder.h"
#include "kernels/axpby/op.h"
#include "kernels/lane_merge/op.h"
#include "kernels/residual_mix_norm/op.h"
#include "kernels/rms_norm/op.h"
#include "kernels/scaled_add_norm/op.h"
#include "kernels/skip_merge/op.h"
#include "tests/support/built_graph.h"
#include "tests/support/fused_model.h"
#include "tests/support/model_runner.h"

namespace mulligan::graph_fuse_residuals_test {
namespace {

const TensorType rows(MLG_F32, {6, 8}), vector_type(MLG_F32, {8}), mix_type(MLG_F32, {2, 8});
const double eps = 1e-6;

// A graph of ops between external tensors.
struct Built : BuiltGraph {
  using BuiltGraph::BuiltGraph;

  Value in(const char* name) { return graph.external(name, rows); }
  Value vector(const char* name) { return graph.external(name, vector_type); }
  Value add(Value x, const char* a) {
    return ops::scaled_add_norm(tape, x, in(a), vector("s"), 1.0, eps, false).sum;
  }
  Value merge(Value x, Value skip) { return ops::skip_merge(tape, x, skip, vector("w"), vector("g")); }
  ops::MixedResidual mix(Value x) {
    return ops::residual_mix_norm(tape, x, in("x0"), graph.external("mix", mix_type), 0.5, eps, true);
  }
  void watch(const char* name, const TensorType& type) {
    tape.watch(graph.external(name, type), graph.external(std::string("d") + name, type));
  }
  std::size_t fuse(std::size_t split = 0) { return fuse_residuals(graph, CallAccess(cpu()), split); }
};
constexpr std::size_t sum_argument = 8, merged_argument = 9;

TEST(FuseResiduals, AnAdditionAndTheNextBlocksNormBecomeOneCall) {
  Built built;
  const Value sum = built.add(built.in("x"), "a");
  const auto [y, n] = built.mix(sum);
  built.fuse();
  ASSERT_EQ(built.kernels(), (Kernels{"residual_chain_fwd"}));
  const Call& call = built.graph.calls()[0];
  EXPECT_EQ(call.arguments, (std::vector<Value>{built.in("x"),
                                                built.in("a"),
                                                built.vector("s"),
                                                {},
                                                {},
                                                {},
                                                built.in("x0"),
                                                built.graph.external("mix", mix_type),
                                                {},
                                                {},
                                                y,
                                                n}));
  EXPECT_EQ(call.attributes[0].value, 0.5);
}

TEST(FuseResiduals, WhatOthersReadLaterOrOutlastsTheGraphIsWritten) {
  Built built;
  const Value sum = built.add(built.in("x"), "a");
  const Value merged = built.merge(sum, built.in("skip"));
  built.mix(merged);
  built.read(sum, "kept");
  built.fuse();
  ASSERT_EQ(built.kernels(), (Kernels{"residual_chain_fwd", "cast"}));
  EXPECT_EQ(built.graph.calls()[0].arguments[sum_argument], sum);
  EXPECT_EQ(built.graph.calls()[0].arguments[merged_argument], Value{});

  Built outlasting;
  const Value result = outlasting.graph.external("result", rows);
  outlasting.graph.call("scaled_add_norm_fwd",
                        {outlasting.in("x"), outlasting.in("a"), outlasting.vector("s"), result, Value{}},
                        {{"scale", 1.0}, {"eps", eps}});
  outlasting.mix(result);
  outlasting.fuse();
  ASSERT_EQ(outlasting.kernels(), (Kernels{"residual_chain_fwd"}));
  EXPECT_EQ(outlasting.graph.calls()[0].arguments[sum_argument], result);
}

// The sum that a norm follows, and what keeps the two calls apart.
TEST(FuseResiduals, WhatReadsOrWritesInBetweenKeepsTheCallsApart) {
  const auto apart = [](const char* what, auto&& make_sum) {
    Built built;
    built.mix(make_sum(built));
    const Kernels before = built.kernels();
    built.fuse();
    EXPECT_EQ(built.kernels(), before) << what;
  };
  const auto after_sum = [](auto&& act) {
    return [act](Built& built) {
      const Value sum = built.add(built.in("x"), "a");
      act(built, sum);
      return sum;
    };
  };
  apart("a reader of the sum", after_sum([](Built& built, Value sum) { built.read(sum, "kept"); }));
  apart("a writer of an input", after_sum([](Built& built, Value) { built.read(built.in("other"), "x"); }));
  apart("a kernel that nobody knows",
        after_sum([](Built& built, Value) { built.graph.call("a_plugins_kernel", {built.in("x")}); }));
  apart("a change of the sum", after_sum([](Built& built, Value sum) {
          built.graph.call("axpby", {built.in("other"), Value{}, sum},
                           {{"alpha", 1.0}, {"beta", 0.0}, {"accumulate_y", 1.0}});
        }));
  apart("a norm of its own", [](Built& built) {
    return ops::scaled_add_norm(built.tape, built.in("x"), built.in("a"), built.vector("s"), 1.0, eps, true)
        .sum;
  });
}

// The first decoder block's skip is the sum itself.
TEST(FuseResiduals, ASkipThatIsTheSumIsLeftOut) {
  Built built;
  const Value sum = built.add(built.in("x"), "a");
  built.mix(built.merge(sum, sum));
  built.fuse();
  ASSERT_EQ(built.kernels(), (Kernels{"residual_chain_fwd"}));
  const Call& call = built.graph.calls()[0];
  EXPECT_EQ(call.arguments[3], Value{});
  EXPECT_EQ(call.arguments[4], built.vector("w"));
  EXPECT_EQ(call.arguments[sum_argument], Value{});
}

// An unrelated call in between stays where it is.
TEST(FuseResiduals, CallsOnBothSidesOfTheSplitStayApart) {
  for (const std::size_t split : {1, 2, 3}) {
    Built built;
    const Value sum = built.add(built.in("x"), "a");
    built.read(built.in("other"), "elsewhere");
    built.mix(sum);
    const std::size_t moved = built.fuse(split);
    if (split == 3) {
      EXPECT_EQ(built.kernels(), (Kernels{"cast", "residual_chain_fwd"}));
      EXPECT_EQ(moved, 2U);
    } else {
      EXPECT_EQ(built.kernels(), (Kernels{"scaled_add_norm_fwd", "cast", "residual_mix_norm_fwd"}));
      EXPECT_EQ(moved, split);
    }
  }
}

// Both passes: `skip` none, another tensor or the sum itself.
enum class Joined { nothing, skip, itself };

struct Boundary : Built {
  Boundary(Joined joined, bool sum_is_read_later, bool scaled = true) : Built(true) {
    watch("a", rows);
    watch("x0", rows);
    watch("mix", mix_type);
    for (const char* name : {"s", "w", "g"}) watch(name, vector_type);
    // The residual is itself a sum, as between blocks.
    const Value x = ops::scaled_add_norm(tape, in("stream"), in("a"), vector("s"), 1.0, eps, true).sum;
    const Value sum =
        ops::scaled_add_norm(tape, x, in("b"), scaled ? vector("s") : Value{}, 1.0, eps, false).sum;
    const Value merged = joined == Joined::nothing ? sum
                         : joined == Joined::skip  ? merge(sum, in("a"))
                                                   : merge(sum, sum);
    Value out = mix(merged).norm;
    if (sum_is_read_later) out = ops::scaled_add_norm(tape, out, sum, vector("w"), 1.0, eps, false).sum;
    tape.backward(out, graph.external("seed", rows));
  }
};

// An addition without a scale passes its gradient on: one call less where a parameter's is added, none backward where both are.
TEST(FuseResiduals, GradientsCrossABoundaryInOneCall) {
  for (const Joined joined : {Joined::nothing, Joined::skip, Joined::itself}) {
    for (const int setting : {0, 1, 2, 3}) {
      const bool sum_is_read_later = setting % 2 == 1, scaled = setting < 2;
      SCOPED_TRACE(testing::Message() << static_cast<int>(joined) << " " << setting);
      Boundary plain(joined, sum_is_read_later, scaled), fused(joined, sum_is_read_later, scaled);
      fused.fuse();
      const Kernels kernels = fused.kernels();
      const bool joins = scaled || joined != Joined::nothing || !sum_is_read_later;
      EXPECT_EQ(std::ranges::count(kernels, "residual_chain_fwd"), 1);
      EXPECT_EQ(std::ranges::count(kernels, "residual_chain_bwd"), joins ? 1 : 0);
      EXPECT_EQ(std::ranges::count(kernels, "residual_mix_norm_bwd"), joins ? 0 : 1);
      for (const char* gone : {"residual_mix_norm_fwd", "skip_merge_fwd", "skip_merge_bwd"})
        EXPECT_EQ(std::ranges::count(kernels, gone), 0) << gone;
      if (scaled) {  // what only the backward pass would have read again is not read
        EXPECT_EQ(static_cast<bool>(fused.only("residual_chain_fwd").arguments[sum_argument]),
                  sum_is_read_later);
        EXPECT_FALSE(fused.only("residual_chain_fwd").arguments[merged_argument]);
      } else if (joins) {
        const Call& call = fused.only("residual_chain_bwd");
        EXPECT_FALSE(call.arguments[2]) << "s";
        EXPECT_TRUE(call.arguments[12]) << "dx";
        EXPECT_FALSE(call.arguments[13]) << "da";
        EXPECT_FALSE(call.arguments[14]) << "ds";
      }
      const auto expected = run(plain.graph), actual = run(fused.graph);
      ASSERT_EQ(expected.size(), actual.size());
      for (const auto& [name, values] : expected) {
        for (std::size_t i = 0; i < values.size(); ++i)
          EXPECT_NEAR(actual.at(name)[i], values[i], 2e-6 * std::max(1.0F, std::abs(values[i]))) << name;
      }
    }
  }
}

// What an optimiser records on the cpu backend.
struct Recorded {
  Graph graph;
  const TensorType square{MLG_F32, {4, 4}};
  Value a = graph.external("a", square), term = graph.external("term", square), copy = graph.scratch(square);
  std::vector<std::string> kernels;

  // A copy of term, then the calls that `body` launches.
  template <typename Body>
  explicit Recorded(bool fused, Body&& body) {
    {
      const GraphRecorder recorder(graph, "state", fused ? FusedKernels(cpu()) : FusedKernels());
      const auto launch = [&](const char* kernel, std::vector<Value> values, double beta) {
        const mlg_recorder& table = *recorder.table();
        std::vector<mlg_value> arguments;
        for (const Value value : values) arguments.push_back(value.id);
        const mlg_attribute attributes[] = {
            {"transpose_a", 0}, {"transpose_b", 1}, {"alpha", 1}, {"beta", beta}};
        const bool matmul = std::string_view(kernel) != "cast";
        ASSERT_EQ(table.launch(table.self, kernel, arguments.data(),
                               static_cast<std::uint32_t>(arguments.size()), attributes, matmul ? 4 : 0),
                  nullptr);
      };
      launch("cast", {term, copy}, 0);
      body(*this, launch);
    }
    for (const Call& call : graph.calls()) kernels.push_back(call.kernel);
  }
};

TEST(GraphRecorder, AMatmulThatAddsToACopyTakesItsTerm) {
  const Recorded seen(true, [](auto& r, auto& launch) { launch("matmul", {r.a, r.a, r.copy}, 0.5); });
  ASSERT_EQ(seen.kernels, (Kernels{"matmul_add"}));
  const std::vector<Value>& arguments = seen.graph.calls()[0].arguments;
  ASSERT_EQ(arguments.size(), 4U);
  EXPECT_EQ(arguments[0], seen.a);
  EXPECT_EQ(arguments[3], seen.copy);
  EXPECT_EQ(seen.graph.root(arguments[2]), seen.term);
  EXPECT_EQ(seen.graph.calls()[0].attributes[3].value, 0.5);
  // What is copied may also be multiplied: it is only read.
  const Recorded own(true, [](auto& r, auto& launch) { launch("matmul", {r.term, r.term, r.copy}, 1); });
  EXPECT_EQ(own.kernels, (Kernels{"matmul_add"}));
}

// As muon joins its banks: one copy, and a matmul for each part of it.
TEST(GraphRecorder, MatmulsThatAddToAllPartsOfACopyTakeTheirs) {
  const TensorType half(MLG_F32, {2, 4});
  const auto parts = [&](std::int64_t first, std::int64_t second) {
    return Recorded(true, [=](auto& r, auto& launch) {
      for (const std::int64_t offset : {first, second}) {
        launch("matmul", {r.graph.view(r.a, 0, half), r.a, r.graph.view(r.copy, offset, half)}, 1);
      }
    });
  };
  const Recorded both = parts(8, 0);
  ASSERT_EQ(both.kernels, (Kernels{"matmul_add", "matmul_add"}));
  for (const Call& call : both.graph.calls()) {
    const Graph::ValueInfo &term = both.graph.info(call.arguments[2]),
                           &part = both.graph.info(call.arguments[3]);
    EXPECT_EQ(term.base, both.term);
    EXPECT_EQ(part.base, both.copy);
    EXPECT_EQ(term.offset, part.offset);
  }
  EXPECT_EQ(parts(0, 0).kernels, (Kernels{"cast", "matmul", "matmul"})) << "one part twice, one never";
  EXPECT_EQ(parts(0, 4).kernels, (Kernels{"cast", "matmul", "matmul"})) << "parts that overlap";
  const Recorded one(true, [&](auto& r, auto& launch) {
    launch("matmul", {r.graph.view(r.a, 0, half), r.a, r.graph.view(r.copy, 0, half)}, 1);
    launch("matmul", {r.a, r.copy, r.term}, 0);
  });
  EXPECT_EQ(one.kernels, (Kernels{"cast", "matmul", "matmul"})) << "half of the copy stays what it was";
}

TEST(GraphRecorder, OtherCopiesStay) {
  const Kernels both = {"cast", "matmul"};
  const auto kernels = [](bool fused, auto&& body) { return Recorded(fused, body).kernels; };
  const auto plain = [](auto& r, auto& launch) { launch("matmul", {r.a, r.a, r.copy}, 0.5); };
  EXPECT_EQ(kernels(false, plain), both) << "without fused kernels";
  EXPECT_EQ(kernels(true, [](auto&, auto&) {}), (Kernels{"cast"})) << "nothing follows";
  const auto multiplied = [](auto& r, auto& launch) { launch("matmul", {r.copy, r.a, r.copy}, 0.5); };
  EXPECT_EQ(kernels(true, multiplied), both) << "the copy is multiplied, too";
  const auto overwritten = [](auto& r, auto& launch) { launch("matmul", {r.a, r.a, r.copy}, 0); };
  EXPECT_EQ(kernels(true, overwritten), both) << "nothing is added";
  const auto elsewhere = [](auto& r, auto& launch) { launch("matmul", {r.a, r.copy, r.term}, 1); };
  EXPECT_EQ(kernels(true, elsewhere), both) << "another result";
  const auto later = [](auto& r, auto& launch) {
    launch("cast", {r.a, r.term}, 0);
    launch("matmul", {r.a, r.a, r.copy}, 1);
  };
  EXPECT_EQ(kernels(true, later), (Kernels{"cast", "cast", "matmul"}))
      << "a call in between may write the term";
}

// The bits of the copy and the matmul.
TEST(GraphRecorder, AMatmulWithItsTermComputesTheSame) {
  std::map<bool, std::vector<float>> results;
  for (const bool fused : {false, true}) {
    Recorded recorded(fused, [](auto& r, auto& launch) { launch("matmul", {r.a, r.term, r.copy}, -0.5); });
    recorded.graph.call("cast", {recorded.copy, recorded.graph.external("result", recorded.square)});
    results[fused] = run(std::move(recorded.graph)).at("result");
  }
  EXPECT_EQ(results[true], results[false]);
}

struct LanesMean : Built {
  explicit LanesMean(double of_second) : Built(true) {
    watch("a", rows);
    const TensorType pair(MLG_F32, {2}), square(MLG_F32, {2, 2});
    const ops::Lanes out = ops::lane_merge(
        tape, {in("x"), in("y")}, in("a"), in("m"),
        {vector("s"), vector("w"), graph.external("rho", pair), graph.external("post", square)});
    const Value mean = ops::add(tape, out.attention, out.mlp, 0.5, of_second);
    tape.backward(ops::rms_norm(tape, mean, 1.0, eps), graph.external("seed", rows));
  }
};

TEST(FuseResiduals, BothLanesReadTheGradientOfTheirMean) {
  LanesMean plain(0.5), fused(0.5);
  fused.fuse();
  EXPECT_EQ(std::ranges::count(plain.kernels(), "axpby"), 3);
  EXPECT_EQ(std::ranges::count(fused.kernels(), "axpby"), 1);
  const Call &norm = fused.only("rms_norm_bwd"), &merge = fused.only("lane_merge_bwd");
  EXPECT_EQ(merge.arguments[8], norm.arguments[2]);
  EXPECT_EQ(merge.arguments[9], norm.arguments[2]);
  const auto expected = run(plain.graph), actual = run(fused.graph);
  EXPECT_EQ(expected.at("da"), actual.at("da"));

  LanesMean weighted(0.25);  // keeps its two gradients
  const Kernels before = weighted.kernels();
  weighted.fuse();
  EXPECT_EQ(weighted.kernels(), before);
}

// A gradient that only passes through is not copied.
TEST(ScaledAddNorm, TheResidualsGradientIsThatOfTheSum) {
  Built built(true);
  built.watch("a", rows);
  const Value x = built.add(built.in("stream"), "a");
  const Value sum = built.add(x, "b");
  const Value y = built.mix(sum).sum;
  built.tape.backward(y, built.graph.external("seed", rows));
  const Value gradient = built.only("residual_mix_norm_bwd").arguments[5];
  for (const Call& call : built.graph.calls()) {
    if (call.kernel != "scaled_add_norm_bwd") continue;
    EXPECT_EQ(call.arguments[3], gradient);
    EXPECT_FALSE(call.arguments[5]);
  }
}

// But the caller's own tensor is never written.
TEST(ScaledAddNorm, TheSeedOfABackwardPassIsNotAddedTo) {
  Built built(true);
  built.watch("a", rows);
  const Value x = built.add(built.in("stream"), "a");
  const Value sum = built.add(x, "b");
  built.tape.backward(sum, built.graph.external("seed", rows));
  const auto values = run(built.graph);
  const PhiloxStream noise(3, "seed");
  for (std::size_t i = 0; i < values.at("seed").size(); ++i)
    EXPECT_EQ(values.at("seed")[i], static_cast<float>(noise.normal(i)));
}

// The whole model, and models that lack a part which fused calls would compute along, or end otherwise.
TEST(FuseResiduals, ModelsComputeTheSame) {
  const auto check = [](const char* what, auto&& change) {
    SCOPED_TRACE(what);
    ModelConfig model = fused_test_model();
    change(model);
    std::map<bool, ModelResult> results;
    for (const bool fused : {false, true}) {
      const std::unique_ptr<Backend> backend = make_cpu_backend(2);
      backend->set_fused_kernels(fused);
      results[fused] = run_model(*backend, model, LayerOrderKind::looped, MLG_F32);
    }
    EXPECT_LE(difference(results[true].logits, results[false].logits), 2e-6);
    for (const auto& [name, gradient] : results[false].gradients)
      EXPECT_LE(difference(results[true].gradients.at(name), gradient), 2e-5) << name;
  };
  check("everything", [](ModelConfig&) {});
  check("no mix", [](ModelConfig& model) { model.residual_mix = false; });
  check("no skips", [](ModelConfig& model) { model.skip_weights = false, model.skip_gates = false; });
  check("skips without gates", [](ModelConfig& model) { model.skip_gates = false; });
  check("lanes from the first decoder entry on", [](ModelConfig& model) { model.lanes.parallel_start = 1; });
  check("one block of lanes", [](ModelConfig& model) { model.lanes.parallel_start = 5; });
  check("no lanes", [](ModelConfig& model) { model.lanes.parallel_start = 0; });
  check("the attention's lane", [](ModelConfig& model) { model.lanes.final_lane = FinalLane::attention; });
  check("the MLP's lane", [](ModelConfig& model) { model.lanes.final_lane = FinalLane::mlp; });
}

}  // namespace
}  // namespace mulligan::graph_fuse_residuals_test
