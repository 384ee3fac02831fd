#include "kernels/attention/cuda_plan.h"
#include "kernels/attention/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "attention/cuda_bwd.cu.inc"

template <typename Shape>
struct Backward : Shape {
  static void plan(sdk::CudaCall& call) {
    using enum shapes::Attention::Argument;
    using enum shapes::AttentionBackward::Gradient;
    attention_constants(call, q, k);
    call.numbers({Shape::softmax_scale});
    call.flags({Shape::accumulate_dq, Shape::accumulate_dk, Shape::accumulate_dv});
    call.constant("bidirectional", std::is_same_v<Shape, shapes::AttentionBidirectionalBackward>);
    const int tokens = static_cast<int>(call.dim(q, 0)),
              segments = static_cast<int>(call.dim(cu_seqlens, 0) - 1);
    const std::int64_t heads = call.dim(q, 1), blocks = blocks_of(tokens, kBackwardWarps);
    const sdk::CudaArgument row_dots = call.floats(heads * tokens);
    sdk::dispatch_rows(call, q, call.dim(q, 2), {q, k, v, d_o}, [&]<typename T, int N>() {
      call.launch(MLG_INSTANCE(attention_bwd_rows, T), {(tokens + 7) / 8, heads, 1}, {256, 1, 1}, o, d_o,
                  row_dots, tokens);
      call.launch(MLG_INSTANCE(attention_bwd_queries, T, N), {blocks, heads, 1}, {kBackwardWarps * 32, 1, 1},
                  q, k, v, cu_seqlens, lse, d_o, row_dots, dq, tokens, segments);
      call.launch(MLG_INSTANCE(attention_bwd_keys, T, N), {blocks, call.dim(k, 1), 1},
                  {kBackwardWarps * 32, 1, 1}, q, k, v, cu_seqlens, lse, d_o, row_dots, dk, dv, tokens,
                  segments);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Backward<shapes::AttentionBackward>>(kSource),
                               sdk::cuda_kernel<Backward<shapes::AttentionBidirectionalBackward>>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
