#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/philox.cuh>

#include "kernels/gradient_noise/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "kernels/gradient_noise/cuda.cu"

constexpr char kSource[] =
#include "gradient_noise/cuda.cu.inc"
    ;

struct Kernel : shapes::GradientNoise {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("mode", static_cast<int>(call.attribute(Attribute::mode)));
    const sdk::ElementPlan plan{call.size(gradient), 1};
    call.launch(MLG_INSTANCE(gradient_noise), plan.grid(), plan.block(), call.tensor(gradient),
                call.tensor(key), call.tensor(step), call.tensor(sigma), call.tensor(squares),
                call.tensor(noise), plan.count, static_cast<std::int64_t>(call.attribute(first)),
                static_cast<std::int64_t>(call.attribute(Attribute::elements)));
  }
};

const Register registered(sdk::cuda_kernel<Kernel>());

}  // namespace
}  // namespace mulligan::cuda
