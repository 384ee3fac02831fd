// Launches of scaled_add_norm.cu.
#include <mulligan/cuda/row_plan.hpp>

#include "plugins/backends/common/shapes/scaled_add_norm.h"
#include "plugins/backends/cuda/kernels/registry.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/scaled_add_norm.cu"

constexpr char kSource[] =
#include "scaled_add_norm.cu.inc"
    ;

using sdk::CudaCall;

struct Forward : shapes::ScaledAddNormForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("scale", call.attribute(scale));
    call.constant("eps", call.attribute(eps));
    sdk::dispatch_rows(call, 0, call.dim(x, 1), {x, a, s, y, n}, [&]<typename T, int N>() {
      const sdk::RowPlan rows(call, call.dim(x, 0), call.dim(x, 1), N, {.values = 2});
      call.launch<&scaled_add_norm_fwd<T, N>>("scaled_add_norm_fwd", sdk::instance<T, N>(), rows.grid(),
                                              rows.block(), call.tensor(x), call.tensor(a), call.tensor(s),
                                              call.tensor(y), call.tensor(n), rows.rows);
    });
  }
};

struct Backward : shapes::ScaledAddNormBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("scale", call.attribute(scale));
    call.constant("eps", call.attribute(eps));
    call.constant("accumulate_dx", call.attribute(accumulate_dx) != 0);
    call.constant("accumulate_da", call.attribute(accumulate_da) != 0);
    const std::int64_t width = call.dim(y, 1);
    sdk::dispatch_rows(call, 0, width, {y, a, s, dy, dn, dx, da}, [&]<typename T, int N>() {
      const sdk::RowPlan rows(call, call.dim(y, 0), width, N, {.values = 5, .most_groups = sdk::kPieces});
      const sdk::CudaArgument partial = call.has(ds) ? call.floats(rows.groups * width) : call.null();
      call.launch<&scaled_add_norm_bwd<T, N>>(
          "scaled_add_norm_bwd", sdk::instance<T, N>(), rows.grid(), rows.block(), call.tensor(y),
          call.tensor(a), call.tensor(s), call.tensor(dy), call.tensor(dn), call.tensor(dx), call.tensor(da),
          partial, rows.rows, static_cast<int>(rows.rows_per_group));
      if (call.has(ds))
        sdk::add_columns<&add_column_sums>(call, partial, call.tensor(ds), rows.groups, width);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cuda
