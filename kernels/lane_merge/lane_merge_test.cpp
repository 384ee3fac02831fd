// skip_merge and lane_merge against their formulas (docs/kernels.md).
#include <cmath>

#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::lane_merge_test {
namespace {

// The widest rows are taken in several slices by the cuda backend, one or several elements at a time.
Operator skip_merge() {
  Operator op{.forward = "skip_merge_fwd", .backward = "skip_merge_bwd"};
  for (const auto& [tokens, width] :
       {std::pair<std::int64_t, std::int64_t>{3, 5}, {7, 37}, {67, 129}, {2500, 7}, {2, 4099}, {1, 8200}}) {
    const Shape rows{tokens, width};
    op.cases.push_back({{{"x", rows}, {"s", rows}, {"weight", {width}, MLG_F32}, {"gate", {width}, MLG_F32}},
                        {{"y", rows}},
                        {}});
  }
  return op.computes([](auto& call) {
    using std::exp;
    auto &x = call.in("x"), &s = call.in("s");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      for (std::int64_t j = 0; j < x.dim(1); ++j) {
        const auto skip = call.in("weight")[j] * s(t, j);
        if (call.has("gate")) {
          call.out("y")(t, j) = skip + 1.0 / (1.0 + exp(-call.in("gate")[j])) * (x(t, j) - skip);
        } else {
          call.out("y")(t, j) = x(t, j) + skip;
        }
      }
    }
  });
}

Operator lane_merge() {
  Operator op{.forward = "lane_merge_fwd", .backward = "lane_merge_bwd"};
  for (const auto& [tokens, width] :
       {std::pair<std::int64_t, std::int64_t>{3, 5}, {7, 37}, {67, 129}, {9, 1031}, {2, 4099}, {1, 8200}}) {
    const Shape rows{tokens, width};
    op.cases.push_back({{{"lane0", rows},
                         {"lane1", rows},
                         {"a", rows},
                         {"m", rows},
                         {"attn_scale", {width}, MLG_F32},
                         {"mlp_scale", {width}, MLG_F32},
                         {"rho", {2}, MLG_F32},
                         {"post", {2, 2}, MLG_F32}},
                        {{"out0", rows}, {"out1", rows}},
                        {}});
  }
  return op.computes([](auto& call) {
    auto &rho = call.in("rho"), &post = call.in("post");
    auto &lane0 = call.in("lane0"), &lane1 = call.in("lane1");
    for (std::int64_t t = 0; t < lane0.dim(0); ++t) {
      for (std::int64_t j = 0; j < lane0.dim(1); ++j) {
        const auto a = call.in("attn_scale")[j] * call.in("a")(t, j);
        const auto m = call.in("mlp_scale")[j] * call.in("m")(t, j);
        call.out("out0")(t, j) = rho[0] * lane0(t, j) + post(0, 0) * a + post(1, 0) * m;
        call.out("out1")(t, j) = rho[1] * lane1(t, j) + post(0, 1) * a + post(1, 1) * m;
      }
    }
  });
}

const RegisterOperator tests[] = {RegisterOperator(skip_merge()), RegisterOperator(lane_merge())};

const std::string lanes = "lane0:Td lane1:Td a:Td m:Td attn_scale:d/f mlp_scale:d/f rho:2/f post:22/f ",
                  lane_gradients =
                      "dlane0:Td dlane1:Td da:Td dm:Td dattn_scale:d/f dmlp_scale:d/f drho:2/f dpost:22/f ",
                  chain = "skip:Td weight:d/f gate:d/f x0:Td mix:2d/f ",
                  chain_gradients = "dskip:Td dweight:d/f dgate:d/f dx0:Td dmix:2d/f";
const RegisterRows registered_rows{
    {"skip_merge_fwd", "x:Td s:Td weight:d/f gate:d/f y:Td"},
    {"skip_merge_bwd", "x:Td s:Td weight:d/f gate:d/f dy:Td dx:Td ds:Td dweight:d/f dgate:d/f"},
    {"lane_merge_fwd", lanes + "out0:Td out1:Td"},
    {"lane_merge_bwd", lanes + "dout0:Td dout1:Td " + lane_gradients},
    {"lane_chain_fwd", lanes + chain + "merged:Td out1:Td n0:Td n1:Td", norm_attributes},
    {"lane_chain_bwd",
     lanes + chain + "dmerged:Td dout1:Td dn0:Td dn1:Td " + lane_gradients + chain_gradients,
     norm_attributes},
    {"lane_mean_norm_fwd", lanes + "n:Td", norm_attributes},
    {"lane_mean_norm_bwd", lanes + "dn:Td " + lane_gradients, norm_attributes}};

}  // namespace
}  // namespace mulligan::kernel_test::lane_merge_test
