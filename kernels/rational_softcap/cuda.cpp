#include <mulligan/cuda/element_plan.hpp>

#include "kernels/rational_softcap/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "rational_softcap/cuda.cu.inc"

struct Forward : shapes::RationalSoftcapForward {
  static void plan(CudaCall& call) {
    call.numbers({cap});
    sdk::dispatch_compute_elements<float>(
        call, {z, y}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
          call.launch(MLG_INSTANCE(rational_softcap_fwd, T, N), elements, z, y, elements.count);
        });
  }
};

struct Backward : shapes::RationalSoftcapBackward {
  static void plan(CudaCall& call) {
    call.numbers({cap});
    call.flags({accumulate_dz});
    sdk::dispatch_compute_elements<float>(
        call, {z, dy, dz}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
          call.launch(MLG_INSTANCE(rational_softcap_bwd, T, N), elements, z, dy, dz, elements.count);
        });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
