// Launches of cross_entropy.cu.
#include <mulligan/cuda/cross_entropy.cuh>
#include <mulligan/cuda/cross_entropy_plan.hpp>

#include "plugins/backends/common/core_kernels.h"
#include "plugins/backends/common/shapes/cross_entropy.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/cross_entropy.cu"

constexpr char kSource[] =
#include "cross_entropy.cu.inc"
    ;

using sdk::CudaCall;

struct Forward : shapes::CrossEntropyForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    sdk::plan_cross_entropy(
        call, call.dim(logits, 1), 0, {logits}, [&]<typename T, int N>(std::uint32_t threads) {
          call.launch(MLG_INSTANCE(cross_entropy_fwd, T, N), {call.dim(logits, 0), 1, 1}, {threads, 1, 1},
                      call.tensor(logits), call.tensor(targets), call.tensor(token_loss), call.tensor(lse));
        });
  }
};

struct Backward : shapes::CrossEntropyBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    sdk::plan_cross_entropy(call, call.dim(logits, 1), 0, {logits, dlogits},
                            [&]<typename T, int N>(std::uint32_t threads) {
                              call.launch(MLG_INSTANCE(cross_entropy_bwd, T, N), {call.dim(logits, 0), 1, 1},
                                          {threads, 1, 1}, call.tensor(logits), call.tensor(targets),
                                          call.tensor(lse), call.tensor(upstream), call.tensor(dlogits));
                            });
  }
};

const backends::Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cuda
