#include <mulligan/cuda/element_plan.hpp>

#include "kernels/rational_softcap/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "kernels/rational_softcap/cuda.cu"

constexpr char kSource[] =
#include "rational_softcap/cuda.cu.inc"
    ;

struct Forward : shapes::RationalSoftcapForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({cap});
    sdk::dispatch_cuda(call.dtype(z), [&]<typename T>() {
      sdk::dispatch_elements<T, float>(call, {z, y}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(rational_softcap_fwd, T, N), elements.grid(), elements.block(),
                    call.tensor(z), call.tensor(y), elements.count);
      });
    });
  }
};

struct Backward : shapes::RationalSoftcapBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({cap});
    call.flags({accumulate_dz});
    sdk::dispatch_cuda(call.dtype(z), [&]<typename T>() {
      sdk::dispatch_elements<T, float>(call, {z, dy, dz}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(rational_softcap_bwd, T, N), elements.grid(), elements.block(),
                    call.tensor(z), call.tensor(dy), call.tensor(dz), elements.count);
      });
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cuda
