// Launches of softcap_ce.cu.
#include <mulligan/cuda/cross_entropy.cuh>
#include <mulligan/cuda/cross_entropy_plan.hpp>

#include "plugins/losses/softcap_ce/softcap_ce_kernels.h"

namespace mulligan::losses {
namespace {

#include "plugins/losses/softcap_ce/softcap_ce.cu"

constexpr char kSource[] =
#include "softcap_ce.cu.inc"
    ;

using sdk::CudaCall;

struct Forward : SoftcapCeForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    sdk::plan_cross_entropy(call, call.dim(logits, 1), call.attribute(softcap), {logits},
                            [&]<typename T, int N>(std::uint32_t threads) {
                              call.launch(MLG_INSTANCE(softcap_ce_fwd, T, N), {call.dim(logits, 0), 1, 1},
                                          {threads, 1, 1}, call.tensor(logits), call.tensor(targets),
                                          call.tensor(token_loss), call.tensor(lse));
                            });
  }
};

struct Backward : SoftcapCeBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    sdk::plan_cross_entropy(call, call.dim(logits, 1), call.attribute(softcap), {logits, dlogits},
                            [&]<typename T, int N>(std::uint32_t threads) {
                              call.launch(MLG_INSTANCE(softcap_ce_bwd, T, N), {call.dim(logits, 0), 1, 1},
                                          {threads, 1, 1}, call.tensor(logits), call.tensor(targets),
                                          call.tensor(lse), call.tensor(upstream), call.tensor(dlogits));
                            });
  }
};

struct Both : SoftcapCeBoth {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    sdk::plan_cross_entropy_both(call, call.dim(logits, 1), call.attribute(softcap), {logits, dlogits},
                                 [&]<typename T, int N, int K>(std::uint32_t threads) {
                                   call.launch(
                                       MLG_INSTANCE(softcap_ce_fwd_bwd, T, N, K), {call.dim(logits, 0), 1, 1},
                                       {threads, 1, 1}, call.tensor(logits), call.tensor(targets),
                                       call.tensor(upstream), call.tensor(token_loss), call.tensor(dlogits));
                                 });
  }
};

}  // namespace

mlg_kernel softcap_ce_fwd_cuda() {
  return sdk::cuda_kernel<Forward>();
}
mlg_kernel softcap_ce_bwd_cuda() {
  return sdk::cuda_kernel<Backward>();
}
mlg_kernel softcap_ce_fwd_bwd_cuda() {
  return sdk::cuda_kernel<Both>();
}

}  // namespace mulligan::losses
