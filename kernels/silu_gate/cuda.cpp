#include <mulligan/cuda/element_plan.hpp>

#include "kernels/silu_gate/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "silu_gate/cuda.cu.inc"

struct Forward : shapes::SiluGateForward {
  static void plan(CudaCall& call) {
    sdk::dispatch_compute_elements(call, {g, u, y}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
      call.launch(MLG_INSTANCE(silu_gate_fwd, T, N), elements, g, u, y, elements.count);
    });
  }
};

struct Backward : shapes::SiluGateBackward {
  static void plan(CudaCall& call) {
    call.flags({accumulate_dg, accumulate_du});
    sdk::dispatch_compute_elements(
        call, {g, u, dy, dg, du}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
          call.launch(MLG_INSTANCE(silu_gate_bwd, T, N), elements, g, u, dy, dg, du, elements.count);
        });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
