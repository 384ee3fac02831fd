#include <mulligan/cuda/element_plan.hpp>

#include "kernels/leaky_relu_squared/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "leaky_relu_squared/cuda.cu.inc"

struct Forward : shapes::LeakyReluSquaredForward {
  static void plan(CudaCall& call) {
    call.numbers({slope});
    sdk::dispatch_compute_elements(call, {u, y}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
      call.launch(MLG_INSTANCE(leaky_relu_squared_fwd, T, N), elements, u, y, elements.count);
    });
  }
};

struct Backward : shapes::LeakyReluSquaredBackward {
  static void plan(CudaCall& call) {
    call.numbers({slope});
    call.flags({accumulate_du});
    sdk::dispatch_compute_elements(
        call, {u, dy, du}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
          call.launch(MLG_INSTANCE(leaky_relu_squared_bwd, T, N), elements, u, dy, du, elements.count);
        });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
