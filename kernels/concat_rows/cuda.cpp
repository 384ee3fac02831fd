#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/concat_rows/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "concat_rows/cuda.cu.inc"

using Parts = std::array<shapes::ConcatRows::Part, shapes::ConcatRows::matrices>;

void give_widths(CudaCall& call, std::int64_t width, const Parts& p) {
  call.constant("columns", width);
  call.constant("width_a", p[0].width);
  call.constant("width_b", p[1].width);
  call.constant("width_c", p[2].width);
  call.constant("width_d", p[3].width);
}

struct Forward : shapes::ConcatRowsForward {
  static void plan(CudaCall& call) {
    const std::int64_t width = call.dim(y, 1);
    const Parts p = parts(call, a);
    give_widths(call, width, p);
    sdk::dispatch_rows(call, y, width, {a, b, c, d, y}, [&]<typename T, int N>() {
      const sdk::ElementPlan elements{call.size(y), N};
      call.launch(MLG_INSTANCE(concat_rows_fwd, T, N), elements, a, b, c, d, y, p[0].end, p[1].begin,
                  p[1].end, p[2].begin, p[2].end, p[3].begin, p[3].end, elements.count);
    });
  }
};

struct Backward : shapes::ConcatRowsBackward {
  static void plan(CudaCall& call) {
    const std::int64_t width = call.dim(dy, 1);
    const Parts p = parts(call, da);
    give_widths(call, width, p);
    sdk::dispatch_rows(call, dy, width, {dy, da, db, dc, dd}, [&]<typename T, int N>() {
      const sdk::ElementPlan elements{call.size(dy), N};
      call.launch(MLG_INSTANCE(concat_rows_bwd, T, N), elements, dy, da, db, dc, dd, p[0].end, p[1].begin,
                  p[1].end, p[2].begin, p[2].end, p[3].begin, p[3].end, elements.count);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
