#include <mulligan/cuda/element_plan.hpp>

#include "kernels/softcap/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "softcap/cuda.cu.inc"

struct Forward : shapes::SoftcapForward {
  static void plan(CudaCall& call) {
    call.numbers({cap});
    call.constant("inverse_cap", 1.0 / call.attribute(cap));
    sdk::dispatch_compute_elements(call, {z, y}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
      call.launch(MLG_INSTANCE(softcap_fwd, T, N), elements, z, y, elements.count);
    });
  }
};

struct Backward : shapes::SoftcapBackward {
  static void plan(CudaCall& call) {
    call.constant("inverse_cap", 1.0 / call.attribute(cap));
    call.flags({accumulate_dz});
    sdk::dispatch_compute_elements(
        call, {z, dy, dz}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
          call.launch(MLG_INSTANCE(softcap_bwd, T, N), elements, z, dy, dz, elements.count);
        });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
