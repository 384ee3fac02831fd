#include <mulligan/cuda/row_plan.hpp>

#include "kernels/scale_rows/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "scale_rows/cuda.cu.inc"

struct Forward : shapes::ScaleRowsForward {
  static void plan(CudaCall& call) {
    sdk::plan_rows(call, w, {w, y}, {.values = 2}, [&]<typename T, int N>(const sdk::RowPlan& rows) {
      call.launch(MLG_INSTANCE(scale_rows_fwd, T, N), rows, w, s, y, rows.rows);
    });
  }
};

struct Backward : shapes::ScaleRowsBackward {
  static void plan(CudaCall& call) {
    sdk::plan_rows(call, w, {w, dy, dw}, {.values = 4}, [&]<typename T, int N>(const sdk::RowPlan& rows) {
      call.launch(MLG_INSTANCE(scale_rows_bwd, T, N), rows, w, s, dy, dw, ds, rows.rows);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
