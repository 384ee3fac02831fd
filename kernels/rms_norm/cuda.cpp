#include <mulligan/cuda/row_plan.hpp>

#include "kernels/rms_norm/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "rms_norm/cuda.cu.inc"

struct Forward : shapes::RmsNormForward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    sdk::plan_rows(call, x, {x, y}, {.values = 1}, [&]<typename T, int N>(const sdk::RowPlan& rows) {
      call.launch(MLG_INSTANCE(rms_norm_fwd, T, N), rows, x, y, rows.rows);
    });
  }
};

struct Backward : shapes::RmsNormBackward {
  static void plan(CudaCall& call) {
    call.numbers({scale, eps});
    call.flags({accumulate_dx});
    sdk::plan_rows(call, x, {x, dy, dx}, {.values = 2}, [&]<typename T, int N>(const sdk::RowPlan& rows) {
      call.launch(MLG_INSTANCE(rms_norm_bwd, T, N), rows, x, dy, dx, rows.rows);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
