// Launches of softcap_ce.cu.
#include <mulligan/cuda/cross_entropy.cuh>
#include <mulligan/cuda/cross_entropy_plan.hpp>

#include "plugins/losses/softcap_ce/softcap_ce_kernels.h"

namespace mulligan::losses {
namespace {

#include "softcap_ce.cu.inc"

using sdk::CudaCall;

struct Forward : SoftcapCeForward {
  static void plan(CudaCall& call) {
    sdk::plan_cross_entropy(call, call.dim(logits, 1), call.attribute(softcap), {logits},
                            [&]<typename T, int N>(std::uint32_t threads) {
                              call.launch(MLG_INSTANCE(softcap_ce_fwd, T, N), {call.dim(logits, 0), 1, 1},
                                          {threads, 1, 1}, logits, targets, token_loss, lse);
                            });
  }
};

struct Backward : SoftcapCeBackward {
  static void plan(CudaCall& call) {
    sdk::plan_cross_entropy(call, call.dim(logits, 1), call.attribute(softcap), {logits, dlogits},
                            [&]<typename T, int N>(std::uint32_t threads) {
                              call.launch(MLG_INSTANCE(softcap_ce_bwd, T, N), {call.dim(logits, 0), 1, 1},
                                          {threads, 1, 1}, logits, targets, lse, upstream, dlogits);
                            });
  }
};

struct Both : SoftcapCeBoth {
  static void plan(CudaCall& call) {
    sdk::plan_cross_entropy_both(call, call.dim(logits, 1), call.attribute(softcap), {logits, dlogits},
                                 [&]<typename T, int N, int K>(std::uint32_t threads) {
                                   call.launch(MLG_INSTANCE(softcap_ce_fwd_bwd, T, N, K),
                                               {call.dim(logits, 0), 1, 1}, {threads, 1, 1}, logits, targets,
                                               upstream, token_loss, dlogits);
                                 });
  }
};

}  // namespace

constinit const mlg_kernel softcap_ce_fwd_cuda = sdk::cuda_kernel<Forward>(kSource);
constinit const mlg_kernel softcap_ce_bwd_cuda = sdk::cuda_kernel<Backward>(kSource);
constinit const mlg_kernel softcap_ce_fwd_bwd_cuda = sdk::cuda_kernel<Both>(kSource);

}  // namespace mulligan::losses
