#include "kernels/attention/cuda_plan.h"
#include "kernels/attention/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"
#include "plugins/backends/cuda/invariant_kernels.h"

namespace mulligan::cuda {
namespace {

#include "attention/cuda_fwd.cu.inc"

template <typename Shape, bool kRestart>
struct Forward : Shape {
  static void plan(sdk::CudaCall& call) {
    using enum shapes::Attention::Argument;
    using enum shapes::AttentionForward::Output;
    attention_constants(call, q, k);
    call.numbers({Shape::softmax_scale});
    call.constant("restart_tiles", kRestart);
    call.constant("bidirectional", std::is_same_v<Shape, shapes::AttentionBidirectionalForward>);
    const int tokens = static_cast<int>(call.dim(q, 0)),
              segments = static_cast<int>(call.dim(cu_seqlens, 0) - 1);
    sdk::dispatch_rows(call, q, call.dim(q, 2), {q, k, v}, [&]<typename T, int N>() {
      call.launch(MLG_INSTANCE(attention_fwd, T, N), {blocks_of(tokens, kForwardWarps), call.dim(q, 1), 1},
                  {kForwardWarps * 32, 1, 1}, q, k, v, cu_seqlens, o, lse, tokens, segments);
    });
  }
};

const Register registered[] = {
    sdk::cuda_kernel<Forward<shapes::AttentionForward, false>>(kSource),
    sdk::cuda_kernel<Forward<shapes::AttentionBidirectionalForward, false>>(kSource)};
constexpr mlg_kernel invariant[] = {
    sdk::cuda_kernel<Forward<shapes::AttentionForward, true>>(kSource),
    sdk::cuda_kernel<Forward<shapes::AttentionBidirectionalForward, true>>(kSource)};

}  // namespace

std::span<const mlg_kernel> invariant_attention_forward() {
  return invariant;
}

}  // namespace mulligan::cuda
