// Attention's formula, and calls of its kernels with known results, for the tests of the forward kernels.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_case.h"

namespace mulligan::kernel_test {

struct Heads {
  std::int64_t query, kv, width;
};

// Segments of these lengths; `attributes`; softmax_scale is 1/sqrt(width) where it is not given.
inline Case attention_case(const std::vector<std::int64_t>& lengths, const Heads& heads,
                           std::map<std::string, double> attributes = {}, double scale = 0.0) {
  std::vector<double> cu = {0.0};
  for (const std::int64_t length : lengths) cu.push_back(cu.back() + static_cast<double>(length));
  const auto tokens = static_cast<std::int64_t>(cu.back());
  const Shape q{tokens, heads.query, heads.width}, kv{tokens, heads.kv, heads.width};
  const Shape segments{static_cast<std::int64_t>(cu.size())};
  attributes["softmax_scale"] = scale > 0 ? scale : 1.0 / std::sqrt(static_cast<double>(heads.width));
  return {{{"q", q}, {"k", kv}, {"v", kv}, {"cu_seqlens", segments, MLG_I32, values(cu)}},
          {{"o", q}, {"lse", {tokens, heads.query}, MLG_F32}},
          std::move(attributes)};
}

// softmax(scale q k^T) v written out, inside each segment: causal, or over all of its keys.
template <typename Call>
void attention_formula(Call& call, bool causal = true) {
  using S = typename std::remove_reference_t<decltype(call)>::Scalar;
  using std::exp;
  auto &q = call.in("q"), &k = call.in("k"), &v = call.in("v"), &o = call.out("o"), &lse = call.out("lse");
  const std::int64_t width = q.dim(2), group = q.dim(1) / k.dim(1);
  for (std::int64_t segment = 0; segment + 1 < call.in("cu_seqlens").size(); ++segment) {
    const std::int64_t begin = call.index("cu_seqlens", segment), end = call.index("cu_seqlens", segment + 1);
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t head = 0; head < q.dim(1); ++head) {
        std::vector<S> scores;
        const std::int64_t seen = causal ? t + 1 : end;
        for (std::int64_t s = begin; s < seen; ++s) {
          S score = 0.0;
          for (std::int64_t j = 0; j < width; ++j) score += q(t, head, j) * k(s, head / group, j);
          scores.push_back(S(call.attribute("softmax_scale")) * score);
        }
        lse(t, head) = log_sum([&](std::int64_t i) { return scores[i]; }, seen - begin);
        for (std::int64_t s = begin; s < seen; ++s) {
          const S weight = exp(scores[s - begin] - lse(t, head));
          for (std::int64_t j = 0; j < width; ++j) o(t, head, j) += weight * v(s, head / group, j);
        }
      }
    }
  }
}

// Lengths around the tile edge, many short segments, empty ones, grouped heads, odd widths.
inline Operator attention_operator(const std::string& forward, const std::string& backward, bool causal) {
  Operator op{.forward = forward, .backward = backward};
  op.cases = {attention_case({3, 1, 4}, {2, 1, 4}),
              attention_case({1, 2}, {1, 1, 8}),
              attention_case({1, 2, 63, 64, 65}, {4, 2, 8}),
              attention_case({70, 0, 0}, {8, 4, 16}),
              attention_case({0, 17, 0, 33, 5}, {3, 1, 33}),
              attention_case({200}, {2, 1, 5}),
              attention_case({131, 66}, {2, 2, 64}),
              attention_case({40, 90}, {1, 1, 50}),
              attention_case({67, 2}, {2, 1, 128}),
              attention_case({100}, {1, 1, 16}, {}, 0.6)};  // larger scores: a sharper softmax
  op.free_extents = {"cu_seqlens"};
  // The backward pass reads o in bf16 and rounds probabilities and their gradients to bf16 before each matmul.
  op.tolerance_bf16 = 5e-2;
  return op.computes([causal](auto& call) { attention_formula(call, causal); });
}

// Segment bounds that do not fit the tokens are refused, not followed into other memory.
inline void expect_bad_segments_refused(const std::string& forward) {
  const Array q{MLG_F32, {4, 1, 2}, std::vector<double>(8, 0.5)}, lse{MLG_F32, {4, 1}, {}};
  for (const std::vector<double>& bounds :
       std::vector<std::vector<double>>{{0, 3}, {0, 5}, {1, 4}, {0, 3, 2, 4}}) {
    const Array cu{MLG_I32, {static_cast<std::int64_t>(bounds.size())}, bounds};
    const KernelCall call =
        kernel_call(forward, "q k v cu_seqlens o lse", {q, q, q, cu, q, lse}, {{"softmax_scale", 1}});
    EXPECT_TRUE(backend_with_threads(1).refuses_values(call)) << bounds.size();
  }
}

// The distance between neighbouring bf16 of x's size.
inline double bf16_spacing(double x) {
  return std::ldexp(1.0, std::ilogb(x) - 7);
}

// Segments of one length, one head, softmax_scale 1; all values are bf16.
struct AttentionProblem {
  std::int64_t segments = 0, length = 0, width = 0;
  std::vector<double> q, k, v;  // [segments * length, width]

  std::int64_t tokens() const { return segments * length; }
  std::vector<double> boundaries() const {
    std::vector<double> cu;
    for (std::int64_t i = 0; i <= segments; ++i) cu.push_back(static_cast<double>(i * length));
    return cu;
  }
  // How many keys of its segment lie before the query that element `i` belongs to.
  std::int64_t place_in_segment(std::size_t i) const { return static_cast<std::int64_t>(i) / width % length; }

  KernelCall call(const std::string& kernel, mlg_dtype dtype,
                  std::map<std::string, double> attributes) const {
    const Shape shape{tokens(), 1, width};
    attributes["softmax_scale"] = 1;
    return kernel_call(kernel, "q k v cu_seqlens o lse",
                       {{dtype, shape, q},
                        {dtype, shape, k},
                        {dtype, shape, v},
                        {MLG_I32, {segments + 1}, boundaries()},
                        {dtype, shape, {}},
                        {MLG_F32, {tokens(), 1}, {}}},
                       std::move(attributes));
  }

  // Of attention_bwd, for what a forward kernel gave.
  KernelCall backward_call(mlg_dtype dtype, const KernelResult& forward,
                           const std::vector<double>& upstream) const {
    KernelCall backward = call("attention_bwd", dtype, {});
    const Array zeros{dtype, {tokens(), 1, width}, std::vector<double>(q.size(), 0.0)};
    for (const char* name : {"o", "lse"}) backward.arguments.at(name) = forward.written.at(name);
    backward.arguments["do"] = {dtype, zeros.shape, upstream};
    for (const char* name : {"dq", "dk", "dv"}) backward.arguments[name] = zeros;
    for (const char* name : {"accumulate_dq", "accumulate_dk", "accumulate_dv"})
      backward.attributes[name] = 0;
    return backward;
  }

  // [segments * length, width], in double precision.
  std::vector<double> exact_output() const {
    const Shape shape{tokens(), 1, width};
    Formula<double> exact;
    exact.inputs["q"] = {shape, q};
    exact.inputs["k"] = {shape, k};
    exact.inputs["v"] = {shape, v};
    exact.inputs["cu_seqlens"] = {{segments + 1}, boundaries()};
    exact.outputs["o"] = {shape, std::vector<double>(q.size())};
    exact.outputs["lse"] = {{tokens(), 1}, std::vector<double>(static_cast<std::size_t>(tokens()))};
    exact.attributes = {{"softmax_scale", 1.0}};
    attention_formula(exact);
    return exact.out("o").data;
  }
};

enum class RepeatedValues {
  one_sign,   // all values in (-4, -2]
  small_rest  // those of the repeated keys; the others in (-2, 0]
};

// The problem of arXiv 2510.04212: the first `repeats` keys of each segment give every query its largest score, the same for
// each of them. The scores of the others are 9 to 12 lower. The largest score is `largest`, or in [1, 6] if that is 0. width >=
// 4.
inline AttentionProblem repeated_maxima(std::int64_t segments, std::int64_t length, std::int64_t width,
                                        std::int64_t repeats, RepeatedValues values, unsigned seed,
                                        double largest = 0) {
  Random random(seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  const auto bf16 = [](double x) { return round_to(MLG_BF16, x); };
  AttentionProblem problem{segments, length, width, {}, {}, {}};
  for (std::int64_t t = 0; t < segments * length; ++t) {
    const bool repeated = t % length < repeats;
    const double most = largest == 0 ? uniform(1, 6) : largest;
    const double small = values == RepeatedValues::small_rest && !repeated ? 2.0 : 0.0;
    for (std::int64_t j = 0; j < width; ++j) {
      // q k = high + low + 1 * gap; what follows meets zeros of k.
      problem.q.push_back(j == 0   ? bf16(most)
                          : j == 1 ? bf16(most - bf16(most))
                          : j == 2 ? 1.0
                                   : bf16(uniform(-1, 1)));
      problem.k.push_back(j < 2 ? 1.0 : j == 2 && !repeated ? bf16(uniform(-12, -9)) : 0.0);
      problem.v.push_back(bf16(small - uniform(2, 4)));
    }
  }
  return problem;
}

}  // namespace mulligan::kernel_test
