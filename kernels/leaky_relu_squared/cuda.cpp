#include <mulligan/cuda/element_plan.hpp>

#include "kernels/leaky_relu_squared/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "kernels/leaky_relu_squared/cuda.cu"

constexpr char kSource[] =
#include "leaky_relu_squared/cuda.cu.inc"
    ;

struct Forward : shapes::LeakyReluSquaredForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({slope});
    sdk::dispatch_cuda(call.dtype(u), [&]<typename T>() {
      sdk::dispatch_elements<T>(call, {u, y}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(leaky_relu_squared_fwd, T, N), elements.grid(), elements.block(),
                    call.tensor(u), call.tensor(y), elements.count);
      });
    });
  }
};

struct Backward : shapes::LeakyReluSquaredBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({slope});
    call.flags({accumulate_du});
    sdk::dispatch_cuda(call.dtype(u), [&]<typename T>() {
      sdk::dispatch_elements<T>(call, {u, dy, du}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(leaky_relu_squared_bwd, T, N), elements.grid(), elements.block(),
                    call.tensor(u), call.tensor(dy), call.tensor(du), elements.count);
      });
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cuda
