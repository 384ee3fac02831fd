#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/philox.cuh>

#include "kernels/uniform_draws/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "kernels/uniform_draws/cuda.cu"

constexpr char kSource[] =
#include "uniform_draws/cuda.cu.inc"
    ;

struct Kernel : shapes::UniformDraws {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const sdk::ElementPlan elements{call.size(values), 1};
    // 24 bits of the bound's 53 in each float.
    const double whole = call.attribute(bound);
    const auto high = static_cast<float>(whole);
    const auto middle = static_cast<float>(whole - high);
    const auto low = static_cast<float>(whole - high - middle);
    call.launch(MLG_INSTANCE(uniform_draws), elements.grid(), elements.block(), call.tensor(key),
                call.tensor(values), high, middle, low, elements.count);
  }
};

const Register registered(sdk::cuda_kernel<Kernel>());

}  // namespace
}  // namespace mulligan::cuda
