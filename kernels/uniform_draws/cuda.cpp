#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/philox.cuh>

#include "kernels/uniform_draws/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "uniform_draws/cuda.cu.inc"

struct Kernel : shapes::UniformDraws {
  static void plan(CudaCall& call) {
    const sdk::ElementPlan elements{call.size(values), 1};
    // 24 bits of the bound's 53 in each float.
    const double whole = call.attribute(bound);
    const auto high = static_cast<float>(whole);
    const auto middle = static_cast<float>(whole - high);
    const auto low = static_cast<float>(whole - high - middle);
    call.launch(MLG_INSTANCE(uniform_draws), elements, key, values, high, middle, low, elements.count);
  }
};

const Register registered(sdk::cuda_kernel<Kernel>(kSource));

}  // namespace
}  // namespace mulligan::cuda
