// Launches of skip_merge.cu.
#include <mulligan/cuda/row_plan.hpp>

#include "plugins/backends/common/shapes/skip_merge.h"
#include "plugins/backends/cuda/kernels/registry.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/skip_merge.cu"

constexpr char kSource[] =
#include "skip_merge.cu.inc"
    ;

using sdk::CudaCall;

struct Forward : shapes::SkipMergeForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const std::int64_t width = call.dim(x, 1);
    sdk::dispatch_rows(call, x, width, {x, s, weight, gate, y}, [&]<typename T, int N>() {
      const sdk::RowPlan rows(call, call.dim(x, 0), width, N,
                              {.values = 4, .most_groups = 16 * sdk::kPieces});
      call.launch<&skip_merge_fwd<T, N>>("skip_merge_fwd", sdk::instance<T, N>(), rows.grid(), rows.block(),
                                         call.tensor(x), call.tensor(s), call.tensor(weight),
                                         call.tensor(gate), call.tensor(y), rows.rows,
                                         static_cast<int>(rows.rows_per_group));
    });
  }
};

struct Backward : shapes::SkipMergeBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("accumulate_dx", call.attribute(accumulate_dx) != 0);
    call.constant("accumulate_ds", call.attribute(accumulate_ds) != 0);
    const std::int64_t width = call.dim(x, 1);
    sdk::dispatch_rows(call, x, width, {x, s, weight, gate, dy, dx, ds}, [&]<typename T, int N>() {
      const sdk::RowPlan rows(call, call.dim(x, 0), width, N, {.values = 7, .most_groups = sdk::kPieces});
      const auto room = [&](std::uint32_t argument) {
        return call.has(argument) ? call.floats(rows.groups * width) : call.null();
      };
      const sdk::CudaArgument of_weight = room(dweight), of_gate = room(dgate);
      call.launch<&skip_merge_bwd<T, N>>(
          "skip_merge_bwd", sdk::instance<T, N>(), rows.grid(), rows.block(), call.tensor(x), call.tensor(s),
          call.tensor(weight), call.tensor(gate), call.tensor(dy), call.tensor(dx), call.tensor(ds),
          of_weight, of_gate, rows.rows, static_cast<int>(rows.rows_per_group));
      if (call.has(dweight)) {
        sdk::add_columns<&add_column_sums>(call, of_weight, call.tensor(dweight), rows.groups, width);
      }
      if (call.has(dgate))
        sdk::add_columns<&add_column_sums>(call, of_gate, call.tensor(dgate), rows.groups, width);
    });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cuda
