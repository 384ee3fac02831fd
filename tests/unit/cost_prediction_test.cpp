// Predicted bytes, FLOPs and seconds of small graphs, computed on paper.
#include <gtest/gtest.h>

#include "tests/support/plugins.h"
#include "tools/cost/prediction.h"

namespace mulligan::cost_prediction_test {
namespace {

const CallAccess& access() {
  static const CallAccess known = [] {
    const std::unique_ptr<Backend> backend = make_cpu_backend(1);
    backend->add_kernels(*test_plugin_host().load(MLG_LOSS, "softcap_ce"));
    return CallAccess(*backend);
  }();
  return known;
}

// Round rates: 1 TB/s sustained, 2 fused; matmuls 100 and 50 TFLOP/s, 200 fused; a launch takes 1 us.
Card card() {
  Card card = known_cards().front();
  card.sustained_bytes_per_second = 1e12;
  card.wide_product_flops_per_second = 100e12;
  card.layer_product_flops_per_second = 50e12;
  card.fp32_product_flops_per_second = 10e12;
  card.attention_backward_flops_per_second = 25e12;
  card.own_attention_flops_per_second = 5e12;
  card.launch_seconds = 1e-6;
  return card;
}

TensorType bf16(std::initializer_list<std::int64_t> dims) {
  return TensorType(MLG_BF16, dims);
}

Value product(Graph& graph, Value a, Value b, std::initializer_list<std::int64_t> dims, double beta = 0) {
  const Value c = graph.scratch(bf16(dims));
  graph.call("matmul", {a, b, c}, {{"transpose_a", 0}, {"transpose_b", 0}, {"alpha", 1}, {"beta", beta}});
  return c;
}

CostRow predict_last(const Graph& graph, const mlg_work& work, std::int64_t segment = 1) {
  return predict_call(graph, graph.calls().back(), access(), work, segment, card());
}

constexpr mlg_work one_launch{1, 0, 0}, one_library_call{0, 1, 0};

// 35 instructions for each of 4 million logits, one a lane and fused multiply-add; 16 MB are moved in the same time.
TEST(PredictCall, CrossEntropyTakesTheLongerOfBytesAndInstructions) {
  Graph graph;
  const Value logits = graph.external("logits", bf16({1000, 4000})),
              dlogits = graph.external("dlogits", bf16({1000, 4000}));
  const Value targets = graph.external("targets", TensorType(MLG_I32, {1000}));
  const TensorType row(MLG_F32, {1000});
  graph.call("softcap_ce_fwd_bwd",
             {logits, targets, graph.external("upstream", row), graph.external("loss", row), dlogits},
             {{"softcap", 30}});
  Card slow = card(), fast = card();
  slow.fp32_flops_per_second = 2e12;
  fast.fp32_flops_per_second = 100e12;
  const auto seconds = [&](const Card& on) {
    return predict_call(graph, graph.calls().back(), access(), one_launch, 1, on).seconds - on.launch_seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(slow), 35 * 4e6 / 1e12);
  EXPECT_DOUBLE_EQ(seconds(fast), (16e6 + 12e3) / 1e12);
}

TEST(CallAccess, ReadsWhatIsNotOverwritten) {
  Graph graph;
  const Value x = graph.external("x", bf16({4})), y = graph.external("y", bf16({4}));
  const auto reads_y = [&](double accumulate, double beta) {
    graph.call("axpby", {x, Value{}, y}, {{"alpha", 1}, {"beta", beta}, {"accumulate_y", accumulate}});
    const std::vector<Access> all = access().of(graph.calls().back());
    EXPECT_TRUE(all[0].read && !all[0].written);
    EXPECT_TRUE(!all[1].read && !all[1].written) << "absent";
    EXPECT_TRUE(all[2].written);
    return all[2].read;
  };
  EXPECT_TRUE(reads_y(1, 0)) << "accumulate_y is about y, beta about b";
  EXPECT_FALSE(reads_y(0, 1));
  product(graph, x, x, {2, 2});
  EXPECT_FALSE(access().of(graph.calls().back())[2].read);
  product(graph, x, x, {2, 2}, 0.5);
  EXPECT_TRUE(access().of(graph.calls().back())[2].read);
  EXPECT_THROW(access().of(Call{"unheard_of", {}, {}}), std::logic_error);
}

TEST(PredictCall, AProductIsBoundByItsFlopsOrItsBytes) {
  Graph graph;
  const Value x = graph.external("x", bf16({4096, 512})), w = graph.external("w", bf16({512, 1024}));
  product(graph, x, w, {4096, 1024});
  CostRow seen = predict_last(graph, one_library_call);
  EXPECT_EQ(seen.flops, 2.0 * 4096 * 512 * 1024);
  EXPECT_EQ(seen.bytes_read, 2.0 * (4096 * 512 + 512 * 1024));
  EXPECT_EQ(seen.bytes_written, 2.0 * 4096 * 1024);
  EXPECT_EQ(seen.launches, 1);
  EXPECT_DOUBLE_EQ(seen.seconds, 1e-6 + seen.flops / 50e12);

  const Value head = graph.external("head", bf16({512, 4096}));
  product(graph, x, head, {4096, 4096}, 1);
  seen = predict_last(graph, one_library_call);
  EXPECT_EQ(seen.bytes_read, 2.0 * (4096 * 512 + 512 * 4096 + 4096 * 4096)) << "with beta, c is read";
  EXPECT_DOUBLE_EQ(seen.seconds, 1e-6 + seen.flops / 100e12);

  const Value gate = graph.external("gate", bf16({512, 8}));
  product(graph, x, gate, {4096, 8});
  seen = predict_last(graph, one_library_call);
  EXPECT_DOUBLE_EQ(seen.seconds, 1e-6 + seen.flops / (50e12 * 8 / 128)) << "a tile of 128 columns for 8";

  const Value wide = graph.external("wide", TensorType(MLG_F32, {4096, 512})),
              square = graph.external("square", TensorType(MLG_F32, {512, 512})),
              c = graph.external("c", TensorType(MLG_F32, {4096, 512}));
  graph.call("matmul", {wide, square, c},
             {{"transpose_a", 0}, {"transpose_b", 0}, {"alpha", 1}, {"beta", 0}});
  seen = predict_last(graph, one_library_call);
  EXPECT_DOUBLE_EQ(seen.seconds, 1e-6 + seen.flops / 10e12);
}

// What a kernel is handed as a whole and reads in part, by its code.
TEST(PredictCall, WhatAKernelLeavesUnreadIsNotCounted) {
  Graph graph;
  const std::int64_t tokens = 6, heads = 4, kv_heads = 2, width = 8;
  const Value packed = graph.external("packed", bf16({tokens, 72})), none;
  const Value table = graph.external("table", TensorType(MLG_F32, {tokens, 2}));
  const Value dq = graph.external("dq", bf16({tokens, heads, width})),
              dk = graph.external("dk", bf16({tokens, kv_heads, width}));
  graph.call("qkv_split_norm_rope_bwd",
             {packed, table, table, none, dq, dk, dk, none, none, graph.scratch(bf16({tokens, 72})), none},
             {{"accumulate_dpacked", 0}});
  // The values' heads, the gates and the padding of packed are not needed for any gradient.
  const double turned = 2.0 * tokens * (heads + kv_heads) * width, of_dv = 2.0 * tokens * kv_heads * width;
  EXPECT_EQ(predict_last(graph, one_launch).bytes_read, turned + 2 * 4.0 * tokens * 2 + turned + of_dv);

  const Value y = graph.external("y", bf16({6, 8})), a = graph.external("a", bf16({6, 8})),
              d = graph.external("d", bf16({6, 8})), s = graph.external("s", TensorType(MLG_F32, {8})),
              ds = graph.external("ds", TensorType(MLG_F32, {8}));
  const auto reads = [&](Value dn, Value of_s) {
    graph.call("scaled_add_norm_bwd", {y, a, s, d, dn, none, graph.scratch(bf16({6, 8})), of_s},
               {{"accumulate_dx", 0}, {"accumulate_da", 0}});
    return predict_last(graph, one_launch).bytes_read;
  };
  constexpr double rows = 2.0 * 6 * 8, column = 4.0 * 8;
  EXPECT_EQ(reads(d, ds), 4 * rows + 2 * column);
  EXPECT_EQ(reads(none, ds), 2 * rows + 2 * column) << "y is read for the norm";
  EXPECT_EQ(reads(d, none), 3 * rows + column) << "a is read for the sum";
}

TEST(PredictCall, ProductClassesGoByExtents) {
  Graph graph;
  const auto of = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const Value a = graph.scratch(bf16({m, k})), b = graph.scratch(bf16({k, n}));
    product(graph, a, b, {m, n});
    return product_class(graph, graph.calls().back());
  };
  EXPECT_EQ(of(98304, 512, 2048), ProductClass::layer);
  EXPECT_EQ(of(512, 2048, 98304), ProductClass::layer);
  EXPECT_EQ(of(98304, 8192, 512), ProductClass::wide);
  EXPECT_EQ(of(8192, 512, 98304), ProductClass::wide);
  EXPECT_EQ(of(98304, 8, 512), ProductClass::narrow);
}

TEST(PredictCall, ElementWiseWorkIsItsBytesAndLaunches) {
  Graph graph;
  const Value u = graph.external("u", bf16({1000})), dy = graph.external("dy", bf16({1000}));
  graph.call("leaky_relu_squared_bwd", {u, dy, u}, {{"slope", 0.5}, {"accumulate_du", 0}});
  const CostRow seen = predict_last(graph, {3, 0, 0});
  EXPECT_EQ(seen.flops, 0);
  EXPECT_EQ(seen.bytes_read, 4000);
  EXPECT_EQ(seen.bytes_written, 2000);
  EXPECT_DOUBLE_EQ(seen.seconds, 3e-6 + 6000 / 1e12);
}

TEST(PredictCall, AProductWithActivationCostsWhatComputesIt) {
  constexpr std::int64_t tokens = 98304, width = 512, features = 2048;
  Graph graph;
  const Value x = graph.external("x", bf16({tokens, width})),
              up = graph.external("up", bf16({features, width})),
              down = graph.external("down", bf16({width, features})),
              u = graph.external("u", bf16({tokens, features})),
              y = graph.external("y", bf16({tokens, features}));
  const double flops = 2.0 * tokens * width * features, large = 2.0 * tokens * features;
  const double operands = 2.0 * tokens * width + 2.0 * width * features;
  const mlg_work both{1, 1, 0};

  graph.call("linear_leaky_relu_squared_fwd", {x, up, u, y}, {{"slope", 0.5}});
  CostRow seen = predict_last(graph, one_launch);
  EXPECT_EQ(seen.flops, flops);
  EXPECT_EQ(seen.launches, 1);
  EXPECT_EQ(seen.bytes_read + seen.bytes_written, operands + 2 * large);
  EXPECT_DOUBLE_EQ(seen.seconds, 1e-6 + flops / 50e12);
  seen = predict_last(graph, both);  // the launch reads u and writes y
  EXPECT_EQ(seen.launches, 2);
  EXPECT_EQ(seen.bytes_read + seen.bytes_written, operands + 3 * large);
  EXPECT_DOUBLE_EQ(seen.seconds, 2e-6 + flops / 50e12 + 2 * large / 1e12);

  // In 16 parts of 6,144 rows, 25 MB, u is still in the cache of 50 MB; in 8 it is not.
  const mlg_work sixteen{16, 16, 0}, eight{8, 8, 0};
  seen = predict_last(graph, sixteen);
  EXPECT_EQ(seen.launches, 32);
  EXPECT_EQ(seen.bytes_read + seen.bytes_written, operands + 2 * large);
  EXPECT_DOUBLE_EQ(seen.seconds, 32e-6 + flops / 50e12 + large / 1e12);
  seen = predict_last(graph, eight);
  EXPECT_DOUBLE_EQ(seen.seconds, 16e-6 + flops / 50e12 + 2 * large / 1e12);

  graph.call("linear_leaky_relu_squared_bwd", {x, down, u, y}, {{"slope", 0.5}});
  seen = predict_last(graph, one_launch);
  EXPECT_DOUBLE_EQ(seen.seconds, 1e-6 + flops / 50e12);
  seen = predict_last(graph, both);  // the launch reads u and du and writes du
  EXPECT_EQ(seen.bytes_read + seen.bytes_written, operands + 4 * large);
  EXPECT_DOUBLE_EQ(seen.seconds, 2e-6 + flops / 50e12 + 3 * large / 1e12);
  seen = predict_last(graph, sixteen);
  EXPECT_EQ(seen.bytes_read + seen.bytes_written, operands + 3 * large);
  EXPECT_DOUBLE_EQ(seen.seconds, 32e-6 + flops / 50e12 + 2 * large / 1e12);
}

TEST(PredictCall, AttentionBackwardOfALibraryHasWorkAroundIt) {
  constexpr std::int64_t tokens = 1000, heads = 4, kv_heads = 2, width = 64;
  Graph graph;
  const Value q = graph.external("q", bf16({tokens, heads, width})),
              k = graph.external("k", bf16({tokens, kv_heads, width})),
              cu = graph.external("cu", TensorType(MLG_I32, {5})),
              lse = graph.external("lse", TensorType(MLG_F32, {tokens, heads}));
  graph.call("attention_bwd", {q, k, k, cu, q, lse, q, q, k, k},
             {{"softmax_scale", 1}, {"accumulate_dq", 0}, {"accumulate_dk", 0}, {"accumulate_dv", 0}});
  const double pairs = tokens * (100 + 1) / 2.0, flops = 10.0 * width * heads * pairs;
  const double of_q = 2.0 * tokens * heads * width, of_k = of_q / 2;
  const CostRow own = predict_last(graph, one_launch, 100);
  EXPECT_EQ(own.flops, flops);
  EXPECT_DOUBLE_EQ(own.seconds, 1e-6 + flops / 5e12);
  // q, k, v, o, do, lse and the boundaries are read, dq, dk and dv are written.
  EXPECT_EQ(own.bytes_read, 3 * of_q + 2 * of_k + 4.0 * heads * tokens + 20);
  EXPECT_EQ(own.bytes_written, of_q + 2 * of_k);

  const CostRow library = predict_last(graph, {2, 1, 0}, 100);
  EXPECT_EQ(library.launches, 2 + 3);
  const double cleared = 2 * of_q, read_before = 2 * of_q, summed = 3 * 2 * of_q, written = of_q + 2 * of_k;
  EXPECT_DOUBLE_EQ(library.seconds, 5e-6 + flops / 25e12 + (cleared + read_before + summed + written) / 1e12);
}

}  // namespace
}  // namespace mulligan::cost_prediction_test
