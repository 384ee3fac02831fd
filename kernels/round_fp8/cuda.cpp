#include <mulligan/cuda/element_plan.hpp>

#include "kernels/round_fp8/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "round_fp8/cuda.cu.inc"

struct Kernel : shapes::RoundFp8 {
  static void plan(CudaCall& call) {
    const shapes::Fp8Format format = shapes::fp8_format(int(call.attribute(exponent_bits)));
    call.constant("mantissa_bits", format.mantissa_bits);
    call.constant("least_exponent", format.least_exponent);
    call.constant("largest", format.largest);
    call.constant("inverse_scale", 1.0 / call.attribute(scale));
    call.numbers({scale});
    sdk::dispatch_compute_elements(call, {x, y}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
      call.launch(MLG_INSTANCE(round_fp8, T, N), elements, x, y, elements.count);
    });
  }
};

const Register registered(sdk::cuda_kernel<Kernel>(kSource));

}  // namespace
}  // namespace mulligan::cuda
