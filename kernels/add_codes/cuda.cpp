#include <mulligan/cuda/element_plan.hpp>

#include "kernels/add_codes/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "add_codes/cuda.cu.inc"

struct Kernel : shapes::AddCodes {
  static void plan(CudaCall& call) {
    call.constant("bits", static_cast<int>(call.attribute(Attribute::bits)));
    const sdk::ElementPlan plan{call.size(values), 1};
    call.launch(MLG_INSTANCE(add_codes), plan, codes, grid, values, plan.count);
  }
};

const Register registered(sdk::cuda_kernel<Kernel>(kSource));

}  // namespace
}  // namespace mulligan::cuda
