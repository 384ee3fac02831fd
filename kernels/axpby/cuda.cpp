#include <mulligan/cuda/element_plan.hpp>

#include "kernels/axpby/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "axpby/cuda.cu.inc"

struct Kernel : shapes::Axpby {
  static void plan(CudaCall& call) {
    call.numbers({alpha, beta});
    call.flags({accumulate_y});
    const auto plan_of = [&]<typename A, typename B, typename Y>() { plan_typed<A, B, Y>(call); };
    if (narrow_dtype(call) == MLG_F16) {
      dispatch<f16>(call, plan_of);
    } else {
      dispatch<bf16>(call, plan_of);
    }
  }

 private:
  template <typename A, typename B, typename Y>
  static void plan_typed(CudaCall& call) {
    sdk::dispatch_elements<A, B, Y>(call, {a, b, y}, [&]<int N>(const sdk::ElementPlan& elements) {
      call.launch(MLG_INSTANCE(axpby, A, B, Y, N), elements, a, b, y, elements.count);
    });
  }
};

const Register registered(sdk::cuda_kernel<Kernel>(kSource));

}  // namespace
}  // namespace mulligan::cuda
