#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/philox.cuh>

#include "kernels/gradient_noise/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "gradient_noise/cuda.cu.inc"

struct Kernel : shapes::GradientNoise {
  static void plan(CudaCall& call) {
    call.constant("mode", static_cast<int>(call.attribute(Attribute::mode)));
    const sdk::ElementPlan plan{call.size(gradient), 1};
    call.launch(MLG_INSTANCE(gradient_noise), plan, gradient, key, step, sigma, squares, noise, plan.count,
                static_cast<std::int64_t>(call.attribute(first)),
                static_cast<std::int64_t>(call.attribute(Attribute::elements)));
  }
};

const Register registered(sdk::cuda_kernel<Kernel>(kSource));

}  // namespace
}  // namespace mulligan::cuda
