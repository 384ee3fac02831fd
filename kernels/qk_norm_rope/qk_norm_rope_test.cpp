// qk_norm_rope against its formula (docs/kernels.md).
#include "tests/kernels/norm_row.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::qk_norm_rope_test {
namespace {

Case rope_case(std::int64_t tokens, std::int64_t heads, std::int64_t width, std::int64_t rope_dims,
               std::int64_t row_length, double norm) {
  const Shape x{tokens, heads, width},
      table{row_length + 1, rope_dims / 2};  // tables may be longer than a row
  return {
      {{"x", x}, {"cos", table, MLG_F32}, {"sin", table, MLG_F32}, {"gain", {heads}, MLG_F32, normal(3, 1)}},
      {{"y", x}},
      rotary_attributes(rope_dims, row_length, norm)};
}

Operator qk_norm_rope() {
  Operator op{.forward = "qk_norm_rope_fwd", .backward = "qk_norm_rope_bwd"};
  op.cases = {rope_case(5, 3, 8, 6, 4, 1),    rope_case(7, 2, 10, 10, 7, 0),
              rope_case(5, 2, 7, 0, 5, 1),    rope_case(66, 3, 64, 16, 33, 1),
              rope_case(9, 2, 80, 80, 16, 1), rope_case(1500, 3, 4, 2, 250, 1)};
  return op.computes([](auto& call) {
    using S = typename std::decay_t<decltype(call)>::Scalar;
    auto& x = call.in("x");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      for (std::int64_t head = 0; head < x.dim(1); ++head) {
        const S gain = call.has("gain") ? call.in("gain")[head] : S(1.0);
        turn_head(
            call, [&](std::int64_t j) { return x(t, head, j); }, gain, call.out("y"), t, head);
      }
    }
  });
}

const RegisterOperator registered{qk_norm_rope()};

const std::string rope = "cos:Lr/f sin:Lr/f ", rotary = "rope_dims=8 norm=1 eps=1e-6";
const RegisterRows registered_rows{
    {"qk_norm_rope_fwd", "x:THh " + rope + "gain:H/f y:THh", rotary},
    {"qk_norm_rope_bwd", "x:THh " + rope + "gain:H/f dy:THh dx:THh dgain:H/f", rotary},
    {"qkv_split_norm_rope_fwd", "packed:TF " + rope + "gain:H/f q:THh k:TKh v:TKh gate:TH", rotary},
    {"qkv_split_norm_rope_bwd",
     "packed:TF " + rope + "gain:H/f dq:THh dk:TKh dv:TKh dv_xsa:TKh dgate:TH dpacked:TF dgain:H/f", rotary}};

}  // namespace
}  // namespace mulligan::kernel_test::qk_norm_rope_test
