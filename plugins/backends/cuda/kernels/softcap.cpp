// Launches of softcap.cu.
#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "plugins/backends/common/shapes/softcap.h"
#include "plugins/backends/cuda/kernels/registry.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/softcap.cu"

constexpr char kSource[] =
#include "softcap.cu.inc"
    ;

using sdk::CudaCall;

void declare_cap(CudaCall& call, double cap) {
  call.constant("cap", cap);
  call.constant("inverse_cap", 1.0 / cap);
}

struct Forward : shapes::SoftcapForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    declare_cap(call, call.attribute(cap));
    sdk::dispatch_cuda(call.dtype(z), [&]<typename T>() {
      sdk::dispatch_elements<T>(call, {z, y}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch<&softcap_fwd<T, N>>("softcap_fwd", sdk::instance<T, N>(), elements.grid(),
                                        elements.block(), call.tensor(z), call.tensor(y), elements.count);
      });
    });
  }
};

struct Backward : shapes::SoftcapBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    declare_cap(call, call.attribute(cap));
    call.constant("accumulate_dz", call.attribute(accumulate_dz) != 0);
    sdk::dispatch_cuda(call.dtype(z), [&]<typename T>() {
      sdk::dispatch_elements<T>(call, {z, dy, dz}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch<&softcap_bwd<T, N>>("softcap_bwd", sdk::instance<T, N>(), elements.grid(),
                                        elements.block(), call.tensor(z), call.tensor(dy), call.tensor(dz),
                                        elements.count);
      });
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cuda
