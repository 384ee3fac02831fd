// lane_chain and lane_mean_norm against their formulas (docs/kernels.md).
#include <cmath>

#include "tests/kernels/operator_tests.h"

namespace mulligan::kernel_test::lane_chain_test {
namespace {

constexpr double kEps = 1.1920928955078125e-7;  // 2^-23

std::vector<Operand> lane_inputs(std::int64_t tokens, std::int64_t width) {
  const Shape rows{tokens, width};
  return {{"lane0", rows},
          {"lane1", rows},
          {"a", rows},
          {"m", rows},
          {"attn_scale", {width}, MLG_F32},
          {"mlp_scale", {width}, MLG_F32},
          {"rho", {2}, MLG_F32},
          {"post", {2, 2}, MLG_F32}};
}

Case chain_case(std::int64_t tokens, std::int64_t width, double scale) {
  const Shape rows{tokens, width};
  Case c{lane_inputs(tokens, width),
         {{"merged", rows}, {"out1", rows}, {"n0", rows}, {"n1", rows}},
         {{"scale", scale}, {"eps", kEps}}};
  c.inputs.insert(c.inputs.end(), {{"skip", rows},
                                   {"weight", {width}, MLG_F32},
                                   {"gate", {width}, MLG_F32},
                                   {"x0", rows},
                                   {"mix", {2, width}, MLG_F32}});
  return c;
}

Case mean_case(std::int64_t tokens, std::int64_t width, double scale) {
  return {lane_inputs(tokens, width), {{"n", {tokens, width}}}, {{"scale", scale}, {"eps", kEps}}};
}

// Lane `lane` at token t, column j, after the results of attention and MLP have entered it.
auto merged_lane(auto& call, std::int64_t lane, std::int64_t t, std::int64_t j) {
  auto &rho = call.in("rho"), &post = call.in("post");
  const auto a = call.in("attn_scale")[j] * call.in("a")(t, j);
  const auto m = call.in("mlp_scale")[j] * call.in("m")(t, j);
  return rho[lane] * call.in(lane == 0 ? "lane0" : "lane1")(t, j) + post(0, lane) * a + post(1, lane) * m;
}

// Row t of `out` = scale norm(y).
template <typename Call, typename S>
void normalise(Call& call, const std::vector<S>& y, const char* out, std::int64_t t) {
  using std::sqrt;
  S squares = 0.0;
  for (const S& value : y) squares += value * value;
  const S root = sqrt(squares / S(static_cast<double>(y.size())) + S(call.attribute("eps")));
  for (std::size_t j = 0; j < y.size(); ++j)
    call.out(out)(t, static_cast<std::int64_t>(j)) = S(call.attribute("scale")) * y[j] / root;
}

// The widest rows are taken in several slices by the cuda backend, one or several elements at a time.
Operator lane_chain() {
  Operator op{.forward = "lane_chain_fwd", .backward = "lane_chain_bwd"};
  op.cases = {chain_case(3, 5, 1.0), chain_case(7, 37, 0.5), chain_case(35, 24, 0.7),
              chain_case(1, 4104, 0.3)};
  return op.computes([](auto& call) {
    using std::exp;
    using S = typename std::remove_reference_t<decltype(call)>::Scalar;
    const std::int64_t tokens = call.in("a").dim(0), width = call.in("a").dim(1);
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<S> y0, y1;
      for (std::int64_t j = 0; j < width; ++j) {
        const S lane0 = merged_lane(call, 0, t, j);
        S skip = call.has("skip") ? call.in("skip")(t, j) : S(0.0);
        skip = call.has("weight") ? call.in("weight")[j] * skip : S(0.0);
        const S merged = call.has("gate")
                             ? skip + S(1.0) / (S(1.0) + exp(-call.in("gate")[j])) * (lane0 - skip)
                             : lane0 + skip;
        y0.push_back(call.in("mix")(0, j) * merged + call.in("mix")(1, j) * call.in("x0")(t, j));
        y1.push_back(merged_lane(call, 1, t, j));
        call.out("merged")(t, j) = merged;
        call.out("out1")(t, j) = y1.back();
      }
      normalise(call, y0, "n0", t);
      normalise(call, y1, "n1", t);
    }
  });
}

Operator lane_mean_norm() {
  Operator op{.forward = "lane_mean_norm_fwd", .backward = "lane_mean_norm_bwd"};
  op.cases = {mean_case(3, 5, 1.0),  mean_case(7, 37, 0.5),   mean_case(35, 24, 0.7),
              mean_case(67, 129, 2), mean_case(1, 4104, 0.3), mean_case(2, 4099, 1.0)};
  return op.computes([](auto& call) {
    using S = typename std::remove_reference_t<decltype(call)>::Scalar;
    const std::int64_t tokens = call.in("a").dim(0), width = call.in("a").dim(1);
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<S> mean;
      for (std::int64_t j = 0; j < width; ++j)
        mean.push_back(S(0.5) * (merged_lane(call, 0, t, j) + merged_lane(call, 1, t, j)));
      normalise(call, mean, "n", t);
    }
  });
}

const RegisterOperator tests[] = {RegisterOperator(lane_chain()), RegisterOperator(lane_mean_norm())};

}  // namespace
}  // namespace mulligan::kernel_test::lane_chain_test
