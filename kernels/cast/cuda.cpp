#include <mulligan/cuda/element_plan.hpp>

#include "kernels/cast/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "cast/cuda.cu.inc"

// body.template operator()<T>()
template <typename Body>
void dispatch_float(mlg_dtype dtype, Body&& body) {
  switch (dtype) {
    case MLG_BF16:
      return body.template operator()<bf16>();
    case MLG_F16:
      return body.template operator()<f16>();
    case MLG_F64:
      return body.template operator()<double>();
    default:
      return body.template operator()<float>();
  }
}

struct Kernel : shapes::Cast {
  static void plan(CudaCall& call) {
    dispatch_float(call.dtype(x), [&]<typename From>() {
      dispatch_float(call.dtype(y), [&]<typename To>() {
        sdk::dispatch_elements<From, To>(call, {x, y}, [&]<int N>(const sdk::ElementPlan& elements) {
          call.launch(MLG_INSTANCE(cast, From, To, N), elements, x, y, elements.count);
        });
      });
    });
  }
};

const Register registered(sdk::cuda_kernel<Kernel>(kSource));

}  // namespace
}  // namespace mulligan::cuda
