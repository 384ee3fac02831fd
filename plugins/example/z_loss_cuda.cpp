// Launches of z_loss.cu.
#include <mulligan/cuda/cross_entropy.cuh>
#include <mulligan/cuda/cross_entropy_plan.hpp>

#include "z_loss.h"

namespace z_loss {
namespace {

#include "z_loss.cu.inc"

struct ForwardCuda : Forward {
  static void plan(sdk::CudaCall& call) {
    sdk::plan_cross_entropy(
        call, call.dim(logits, 1), 0, {logits}, [&]<typename T, int N>(std::uint32_t threads) {
          call.launch(MLG_INSTANCE(z_loss_fwd, T, N), {call.dim(logits, 0), 1, 1}, {threads, 1, 1}, logits,
                      targets, token_loss, lse, call.number(weight));
        });
  }
};

struct BackwardCuda : Backward {
  static void plan(sdk::CudaCall& call) {
    sdk::plan_cross_entropy(
        call, call.dim(logits, 1), 0, {logits, dlogits}, [&]<typename T, int N>(std::uint32_t threads) {
          call.launch(MLG_INSTANCE(z_loss_bwd, T, N), {call.dim(logits, 0), 1, 1}, {threads, 1, 1}, logits,
                      targets, lse, upstream, dlogits, call.number(weight));
        });
  }
};

}  // namespace

constinit const mlg_kernel forward_cuda = sdk::cuda_kernel<ForwardCuda>(kSource);
constinit const mlg_kernel backward_cuda = sdk::cuda_kernel<BackwardCuda>(kSource);

}  // namespace z_loss
