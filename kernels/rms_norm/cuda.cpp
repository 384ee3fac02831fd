#include <mulligan/cuda/row_plan.hpp>

#include "kernels/rms_norm/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "rms_norm/cuda.cu.inc"

struct Forward : shapes::RmsNormForward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    const std::int64_t rows = sdk::row_count(call, x), width = sdk::row_width(call, x);
    sdk::dispatch_rows(call, x, width, {x, y}, [&]<typename T, int N>() {
      const sdk::RowPlan plan(call, rows, width, N, {.values = 1});
      call.launch(MLG_INSTANCE(rms_norm_fwd, T, N), plan, x, y, rows);
    });
  }
};

struct Backward : shapes::RmsNormBackward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    call.flags({accumulate_dx});
    const std::int64_t rows = sdk::row_count(call, x), width = sdk::row_width(call, x);
    sdk::dispatch_rows(call, x, width, {x, dy, dx}, [&]<typename T, int N>() {
      const sdk::RowPlan plan(call, rows, width, N, {.values = 2});
      call.launch(MLG_INSTANCE(rms_norm_bwd, T, N), plan, x, dy, dx, rows);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
