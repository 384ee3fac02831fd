// skip_merge, lane_merge, lane_chain and lane_mean_norm against their formulas (docs/kernels.md).
#include "tests/kernels/norm_row.h"
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
    auto &x = call.in("x"), &s = call.in("s");
    for (std::int64_t t = 0; t < x.dim(0); ++t)
      for (std::int64_t j = 0; j < x.dim(1); ++j)
        call.out("y")(t, j) = with_skip(call, x(t, j), call.in("weight")[j] * s(t, j), j);
  });
}

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

Operator lane_merge() {
  Operator op{.forward = "lane_merge_fwd", .backward = "lane_merge_bwd"};
  for (const auto& [tokens, width] :
       {std::pair<std::int64_t, std::int64_t>{3, 5}, {7, 37}, {67, 129}, {9, 1031}, {2, 4099}, {1, 8200}}) {
    const Shape rows{tokens, width};
    op.cases.push_back({lane_inputs(tokens, width), {{"out0", rows}, {"out1", rows}}, {}});
  }
  return op.computes([](auto& call) {
    for (std::int64_t t = 0; t < call.in("a").dim(0); ++t) {
      for (std::int64_t j = 0; j < call.in("a").dim(1); ++j) {
        call.out("out0")(t, j) = merged_lane(call, 0, t, j);
        call.out("out1")(t, j) = merged_lane(call, 1, t, j);
      }
    }
  });
}

// Row t of `out` = scale norm(y).
template <typename Call, typename S>
void normalise(Call& call, const std::vector<S>& y, const char* out, std::int64_t t) {
  const auto width = static_cast<std::int64_t>(y.size());
  const S root = root_mean_square([&](std::int64_t j) { return y[j]; }, width, call.attribute("eps"));
  for (std::int64_t j = 0; j < width; ++j) call.out(out)(t, j) = S(call.attribute("scale")) * y[j] / root;
}

// The widest rows are taken in several slices by the cuda backend, one or several elements at a time.
Operator lane_chain() {
  Operator op{.forward = "lane_chain_fwd", .backward = "lane_chain_bwd"};
  op.cases = {chain_case(3, 5, 1.0), chain_case(7, 37, 0.5), chain_case(35, 24, 0.7),
              chain_case(1, 4104, 0.3)};
  return op.computes([](auto& call) {
    using S = typename std::remove_reference_t<decltype(call)>::Scalar;
    const std::int64_t tokens = call.in("a").dim(0), width = call.in("a").dim(1);
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<S> y0, y1;
      for (std::int64_t j = 0; j < width; ++j) {
        const S lane0 = merged_lane(call, 0, t, j);
        S skip = call.has("skip") ? call.in("skip")(t, j) : S(0.0);
        skip = call.has("weight") ? call.in("weight")[j] * skip : S(0.0);
        const S merged = with_skip(call, lane0, skip, j);
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

const RegisterOperator registered{skip_merge(), lane_merge(), lane_chain(), lane_mean_norm()};

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
