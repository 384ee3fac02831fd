#include <mulligan/cuda/cross_entropy.cuh>
#include <mulligan/cuda/cross_entropy_plan.hpp>

#include "kernels/cross_entropy/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "cross_entropy/cuda.cu.inc"

struct Forward : shapes::CrossEntropyForward {
  static void plan(CudaCall& call) {
    sdk::plan_cross_entropy(call, call.dim(logits, 1), 0, {logits},
                            [&]<typename T, int N>(std::uint32_t threads) {
                              call.launch(MLG_INSTANCE(cross_entropy_fwd, T, N), {call.dim(logits, 0), 1, 1},
                                          {threads, 1, 1}, logits, targets, token_loss, lse);
                            });
  }
};

struct Backward : shapes::CrossEntropyBackward {
  static void plan(CudaCall& call) {
    sdk::plan_cross_entropy(call, call.dim(logits, 1), 0, {logits, dlogits},
                            [&]<typename T, int N>(std::uint32_t threads) {
                              call.launch(MLG_INSTANCE(cross_entropy_bwd, T, N), {call.dim(logits, 0), 1, 1},
                                          {threads, 1, 1}, logits, targets, lse, upstream, dlogits);
                            });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
