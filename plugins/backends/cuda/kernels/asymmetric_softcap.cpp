// Launches of asymmetric_softcap.cu.
#include <mulligan/cuda/column_sums.hpp>
#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "plugins/backends/common/core_kernels.h"
#include "plugins/backends/common/shapes/asymmetric_softcap.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/asymmetric_softcap.cu"

constexpr char kSource[] =
#include "asymmetric_softcap.cu.inc"
    ;

using sdk::CudaCall;

struct Forward : shapes::AsymmetricSoftcapForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    sdk::dispatch_cuda(call.dtype(z), [&]<typename T>() {
      sdk::dispatch_elements<T>(call, {z, y}, [&]<int N>(const sdk::ElementPlan& elements) {
        call.launch(MLG_INSTANCE(asymmetric_softcap_fwd, T, N), elements.grid(), elements.block(),
                    call.tensor(z), call.tensor(positive), call.tensor(negative), call.tensor(y),
                    elements.count);
      });
    });
  }
};

struct Backward : shapes::AsymmetricSoftcapBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.flags({accumulate_dz});
    const std::int64_t width = call.dim(z, 1);
    sdk::dispatch_rows(call, z, width, {z, dy, dz}, [&]<typename T, int N>() {
      const sdk::RowPlan rows(call, call.dim(z, 0), width, N, {.values = 3, .most_blocks = sdk::kPieces});
      const sdk::ColumnSums of_positive(call, dpositive, rows.groups),
          of_negative(call, dnegative, rows.groups);
      call.launch(MLG_INSTANCE(asymmetric_softcap_bwd, T, N), rows.grid(), rows.block(), call.tensor(z),
                  call.tensor(positive), call.tensor(negative), call.tensor(dy), call.tensor(dz),
                  of_positive.partial(), of_negative.partial(), rows.rows,
                  static_cast<int>(rows.rows_per_group));
      of_positive.add(call, MLG_INSTANCE(add_column_sums));
      of_negative.add(call, MLG_INSTANCE(add_column_sums));
    });
  }
};

const backends::Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cuda
