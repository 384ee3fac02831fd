// Launches of lane_merge.cu.
#include <mulligan/cuda/row_plan.hpp>

#include "plugins/backends/common/shapes/lane_merge.h"
#include "plugins/backends/cuda/kernels/registry.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/lane_merge.cu"

constexpr char kSource[] =
#include "lane_merge.cu.inc"
    ;

using sdk::CudaCall;

struct Forward : shapes::LaneMergeForward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const std::int64_t width = call.dim(lane0, 1);
    sdk::dispatch_rows(call, lane0, width, {lane0, lane1, a, m, attn_scale, mlp_scale, out0, out1},
                       [&]<typename T, int N>() {
                         const sdk::RowPlan rows(call, call.dim(lane0, 0), width, N,
                                                 {.values = 4, .most_groups = 16 * sdk::kPieces});
                         call.launch<&lane_merge_fwd<T, N>>(
                             "lane_merge_fwd", sdk::instance<T, N>(), rows.grid(), rows.block(),
                             call.tensor(lane0), call.tensor(lane1), call.tensor(a), call.tensor(m),
                             call.tensor(attn_scale), call.tensor(mlp_scale), call.tensor(rho),
                             call.tensor(post), call.tensor(out0), call.tensor(out1), rows.rows,
                             static_cast<int>(rows.rows_per_group));
                       });
  }
};

struct Backward : shapes::LaneMergeBackward {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const char* flags[] = {"accumulate_dlane0", "accumulate_dlane1", "accumulate_da", "accumulate_dm"};
    for (std::uint32_t i = 0; i < 4; ++i) call.constant(flags[i], call.attribute(i) != 0);
    const std::int64_t width = call.dim(lane0, 1);
    sdk::dispatch_rows(
        call, lane0, width, {lane0, lane1, a, m, attn_scale, mlp_scale, dout0, dout1, dlane0, dlane1, da, dm},
        [&]<typename T, int N>() {
          const sdk::RowPlan rows(call, call.dim(lane0, 0), width, N,
                                  {.values = 8, .most_groups = sdk::kPieces});
          const auto room = [&](std::uint32_t argument) {
            return call.has(argument) ? call.floats(rows.groups * call.size(argument)) : call.null();
          };
          const std::uint32_t gradients[] = {dattn_scale, dmlp_scale, drho, dpost};
          const sdk::CudaArgument partial[] = {room(dattn_scale), room(dmlp_scale), room(drho), room(dpost)};
          call.launch<&lane_merge_bwd<T, N>>(
              "lane_merge_bwd", sdk::instance<T, N>(), rows.grid(), rows.block(), call.tensor(lane0),
              call.tensor(lane1), call.tensor(a), call.tensor(m), call.tensor(attn_scale),
              call.tensor(mlp_scale), call.tensor(rho), call.tensor(post), call.tensor(dout0),
              call.tensor(dout1), call.tensor(dlane0), call.tensor(dlane1), call.tensor(da), call.tensor(dm),
              partial[0], partial[1], partial[2], partial[3], rows.rows,
              static_cast<int>(rows.rows_per_group));
          for (int i = 0; i < 4; ++i) {
            if (!call.has(gradients[i])) continue;
            sdk::add_columns<&add_column_sums>(call, partial[i], call.tensor(gradients[i]), rows.groups,
                                               call.size(gradients[i]));
          }
        });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(), sdk::cuda_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cuda
