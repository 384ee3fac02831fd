#include <mulligan/cuda/column_sums.hpp>

#include "kernels/qk_norm_rope/cuda_rotary_plan.h"
#include "kernels/qk_norm_rope/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "qk_norm_rope/cuda.cu.inc"

// Declares the constants and returns the extent that accesses must divide.
std::int64_t declare(CudaCall& call) {
  using Shape = shapes::QkNormRope;
  call.constant("heads", call.dim(Shape::x, 1));
  return rotary_constants(call, call.dim(Shape::x, 2));
}

struct Forward : shapes::QkNormRopeForward {
  static void plan(CudaCall& call) {
    const std::int64_t rows = call.dim(x, 0) * call.dim(x, 1);
    sdk::dispatch_rows(call, x, declare(call), {x, cos, sin, y}, [&]<typename T, int N>() {
      const sdk::HeadPlan plan(call, rows, call.dim(x, 2), N);
      call.launch(MLG_INSTANCE(qk_norm_rope_fwd, T, N), plan, x, cos, sin, gain, y, rows,
                  rotary_row_length(call));
    });
  }
};

struct Backward : shapes::QkNormRopeBackward {
  static void plan(CudaCall& call) {
    call.flags({accumulate_dx});
    const std::int64_t tokens = call.dim(x, 0), count = call.dim(x, 1);
    const TokenPieces pieces(tokens);
    sdk::dispatch_rows(call, x, declare(call), {x, cos, sin, dy, dx}, [&]<typename T, int N>() {
      const sdk::HeadPlan plan(call, pieces.count * count, call.dim(x, 2), N);
      const sdk::ColumnSums sums(call, dgain, pieces.count);
      call.launch(MLG_INSTANCE(qk_norm_rope_bwd, T, N), plan, x, cos, sin, gain, dy, dx, sums.partial(),
                  tokens, static_cast<int>(pieces.length), rotary_row_length(call));
      sums.add(call, MLG_INSTANCE(add_column_sums));
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
