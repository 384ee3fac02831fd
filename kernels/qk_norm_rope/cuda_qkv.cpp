#include <mulligan/cuda/column_sums.hpp>

#include "kernels/qk_norm_rope/cuda_rotary_plan.h"
#include "kernels/qk_norm_rope/signature_qkv.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "qk_norm_rope/cuda_qkv.cu.inc"

struct Extents {
  std::int64_t slots;   // groups of a token
  std::int64_t access;  // what accesses must divide
};

// Declares the constants. `q`, `k`: arguments of their shapes; `tail`: whether what is not a head needs a group.
Extents declare(CudaCall& call, std::uint32_t q, std::uint32_t k, bool tail) {
  const std::int64_t heads = call.dim(q, 1), kv_heads = call.dim(k, 1), width = call.dim(q, 2),
                     packed_width = call.dim(shapes::QkvSplitNormRope::packed, 1);
  const std::int64_t slots = heads + 2 * kv_heads + (tail ? 1 : 0);
  call.constant("query_heads", heads);
  call.constant("kv_heads", kv_heads);
  call.constant("packed_width", packed_width);
  call.constant("slots", slots);
  call.constant("row_length", rotary_row_length(call));
  return {slots, std::gcd(rotary_constants(call, width), packed_width)};
}

struct Forward : shapes::QkvSplitNormRopeForward {
  static void plan(CudaCall& call) {
    const Extents extents = declare(call, q, k, call.has(gate));
    const std::int64_t tokens = call.dim(q, 0);
    sdk::dispatch_rows(call, packed, extents.access, {packed, cos, sin, q, k, v, gate},
                       [&]<typename T, int N>() {
                         const sdk::HeadPlan plan(call, tokens * extents.slots, call.dim(q, 2), N);
                         call.launch(MLG_INSTANCE(qkv_split_norm_rope_fwd, T, N), plan, packed, cos, sin,
                                     gain, q, k, v, gate, tokens);
                       });
  }
};

struct Backward : shapes::QkvSplitNormRopeBackward {
  static void plan(CudaCall& call) {
    call.flags({accumulate_dpacked});
    const std::int64_t all_heads = call.dim(dq, 1) + 2 * call.dim(dk, 1);
    const Extents extents = declare(call, dq, dk, call.dim(packed, 1) > all_heads * call.dim(dq, 2));
    const std::int64_t tokens = call.dim(dq, 0);
    // Groups with more registers than those of qk_norm_rope: pieces so short that what is left for a last,
    // partly filled round of a large GPU's blocks is little.
    const TokenPieces pieces(tokens, 2 * sdk::kPieces);
    sdk::dispatch_rows(call, packed, extents.access, {packed, cos, sin, dq, dk, dv, dv_xsa, dgate, dpacked},
                       [&]<typename T, int N>() {
                         const sdk::HeadPlan plan(call, pieces.count * extents.slots, call.dim(dq, 2), N);
                         const sdk::ColumnSums sums(call, dgain, pieces.count);
                         call.launch(MLG_INSTANCE(qkv_split_norm_rope_bwd, T, N), plan, packed, cos, sin,
                                     gain, dq, dk, dv, dv_xsa, dgate, dpacked, sums.partial(), tokens,
                                     static_cast<int>(pieces.length));
                         sums.add(call, MLG_INSTANCE(add_column_sums));
                       });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
