// Launches of z_loss.cu.
#include <mulligan/cuda/cross_entropy.cuh>
#include <mulligan/cuda/cross_entropy_plan.hpp>

#include "z_loss.h"

namespace z_loss {
namespace {

#include "z_loss.cu"

constexpr char kSource[] =
#include "z_loss.cu.inc"
    ;

struct ForwardCuda : Forward {
  static constexpr const char* source = kSource;
  static void plan(sdk::CudaCall& call) {
    check(call);
    sdk::plan_cross_entropy(
        call, call.dim(logits, 1), 0, {logits}, [&]<typename T, int N>(std::uint32_t threads) {
          call.launch(MLG_INSTANCE(z_loss_fwd, T, N), {call.dim(logits, 0), 1, 1}, {threads, 1, 1},
                      call.tensor(logits), call.tensor(targets), call.tensor(token_loss), call.tensor(lse),
                      static_cast<float>(call.attribute(weight)));
        });
  }
};

struct BackwardCuda : Backward {
  static constexpr const char* source = kSource;
  static void plan(sdk::CudaCall& call) {
    check(call);
    sdk::plan_cross_entropy(
        call, call.dim(logits, 1), 0, {logits, dlogits}, [&]<typename T, int N>(std::uint32_t threads) {
          call.launch(MLG_INSTANCE(z_loss_bwd, T, N), {call.dim(logits, 0), 1, 1}, {threads, 1, 1},
                      call.tensor(logits), call.tensor(targets), call.tensor(lse), call.tensor(upstream),
                      call.tensor(dlogits), static_cast<float>(call.attribute(weight)));
        });
  }
};

}  // namespace

constinit const mlg_kernel forward_cuda = sdk::cuda_kernel<ForwardCuda>();
constinit const mlg_kernel backward_cuda = sdk::cuda_kernel<BackwardCuda>();

}  // namespace z_loss
