#include <mulligan/cuda/head_plan.hpp>

#include "kernels/head_gate_xsa/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "head_gate_xsa/cuda.cu.inc"

using Shape = shapes::HeadGateXsa;

std::int64_t kv_heads_of(const CudaCall& call) {
  return call.has(Shape::v) ? call.dim(Shape::v, 1) : call.dim(Shape::o, 1);
}

struct Forward : shapes::HeadGateXsaForward {
  static void plan(CudaCall& call) {
    call.constant("members", call.dim(o, 1) / kv_heads_of(call));
    call.numbers({gate_scale});
    const std::int64_t rows = call.dim(o, 0) * call.dim(o, 1);
    sdk::dispatch_rows(call, o, call.dim(o, 2), {o, v, y}, [&]<typename T, int N>() {
      const sdk::HeadPlan plan(call, rows, call.dim(o, 2), N);
      call.launch(MLG_INSTANCE(head_gate_xsa_fwd, T, N), plan, o, v, gate, y, rows);
    });
  }
};

struct Backward : shapes::HeadGateXsaBackward {
  static void plan(CudaCall& call) {
    call.constant("members", call.dim(o, 1) / kv_heads_of(call));
    call.numbers({gate_scale});
    call.flags({accumulate_do, accumulate_dv, accumulate_dgate});
    const std::int64_t kv_rows = call.dim(o, 0) * kv_heads_of(call);
    sdk::dispatch_rows(call, o, call.dim(o, 2), {o, v, dy, d_o, dv}, [&]<typename T, int N>() {
      const sdk::HeadPlan plan(call, kv_rows, call.dim(o, 2), N);
      call.launch(MLG_INSTANCE(head_gate_xsa_bwd, T, N), plan, o, v, gate, dy, d_o, dv, dgate, kv_rows);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
