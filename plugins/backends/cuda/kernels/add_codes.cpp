// Launches of add_codes.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "plugins/backends/common/core_kernels.h"
#include "plugins/backends/common/shapes/add_codes.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/add_codes.cu"

constexpr char kSource[] =
#include "add_codes.cu.inc"
    ;

using sdk::CudaCall;

struct Kernel : shapes::AddCodes {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("bits", static_cast<int>(call.attribute(Attribute::bits)));
    const sdk::ElementPlan plan{call.size(values), 1};
    call.launch(MLG_INSTANCE(add_codes), plan.grid(), plan.block(), call.tensor(codes), call.tensor(grid),
                call.tensor(values), plan.count);
  }
};

const backends::Register registered(sdk::cuda_kernel<Kernel>());

}  // namespace
}  // namespace mulligan::cuda
