#include "kernels/attention/cuda_plan.h"
#include "kernels/attention/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "attention/cuda_stable_fwd.cu.inc"

struct StableForward : shapes::AttentionStableForward {
  static void plan(sdk::CudaCall& call) {
    attention_constants(call, q, k);
    call.numbers({softmax_scale, beta, tolerance, cap});
    call.flags({round_normalizer, round_sums});
    call.constant("min_repeats", static_cast<std::int64_t>(call.attribute(min_repeats)));
    const int tokens = static_cast<int>(call.dim(q, 0)),
              segments = static_cast<int>(call.dim(cu_seqlens, 0) - 1);
    sdk::dispatch_rows(call, q, call.dim(q, 2), {q, k, v}, [&]<typename T, int N>() {
      call.launch(MLG_INSTANCE(attention_stable_fwd, T, N),
                  {blocks_of(tokens, kForwardWarps), call.dim(q, 1), 1}, {kForwardWarps * 32, 1, 1}, q, k, v,
                  cu_seqlens, o, lse, tokens, segments);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<StableForward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
