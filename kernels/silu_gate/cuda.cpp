#include <mulligan/cuda/element_plan.hpp>

#include "kernels/silu_gate/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "kernels/silu_gate/cuda.cu"

constexpr char kSource[] =
#include "silu_gate/cuda.cu.inc"
    ;

struct Forward : shapes::SiluGateForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    sdk::dispatch_cuda(call.dtype(g), [&]<typename T>() {
      sdk::dispatch_elements<T>(call, {g, u, y}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(silu_gate_fwd, T, N), elements.grid(), elements.block(), call.tensor(g),
                    call.tensor(u), call.tensor(y), elements.count);
      });
    });
  }
};

struct Backward : shapes::SiluGateBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.flags({accumulate_dg, accumulate_du});
    sdk::dispatch_cuda(call.dtype(g), [&]<typename T>() {
      sdk::dispatch_elements<T>(call, {g, u, dy, dg, du}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(silu_gate_bwd, T, N), elements.grid(), elements.block(), call.tensor(g),
                    call.tensor(u), call.tensor(dy), call.tensor(dg), call.tensor(du), elements.count);
      });
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cuda
