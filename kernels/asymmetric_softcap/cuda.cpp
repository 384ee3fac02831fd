#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/cuda/row_plan.hpp>

#include "kernels/asymmetric_softcap/signature.h"
#include "plugins/backends/cuda/cuda_kernel.h"

namespace mulligan::cuda {
namespace {

#include "asymmetric_softcap/cuda.cu.inc"

struct Forward : shapes::AsymmetricSoftcapForward {
  static void plan(CudaCall& call) {
    sdk::dispatch_compute_elements(call, {z, y}, [&]<typename T, int N>(const sdk::ElementPlan& elements) {
      call.launch(MLG_INSTANCE(asymmetric_softcap_fwd, T, N), elements, z, positive, negative, y,
                  elements.count);
    });
  }
};

struct Backward : shapes::AsymmetricSoftcapBackward {
  static void plan(CudaCall& call) {
    call.flags({accumulate_dz});
    sdk::plan_rows(call, z, {z, dy, dz}, {.values = 3, .most_blocks = sdk::kPieces},
                   [&]<typename T, int N>(const sdk::RowPlan& rows) {
                     const auto partial = [&](std::uint32_t sum) {
                       return call.has(sum) ? call.floats(2 * rows.groups) : call.null();
                     };
                     const sdk::CudaArgument of_positive = partial(dpositive),
                                             of_negative = partial(dnegative);
                     call.launch(MLG_INSTANCE(asymmetric_softcap_bwd, T, N), rows, z, positive, negative, dy,
                                 dz, of_positive, of_negative, rows.rows, rows.rows_per_group);
                     for (const auto& [sum, parts] :
                          {std::pair{dpositive, of_positive}, std::pair{dnegative, of_negative}}) {
                       if (!call.has(sum)) continue;
                       call.launch(MLG_INSTANCE(asymmetric_softcap_add), {1, 1, 1}, {32, 1, 1}, parts,
                                   call.tensor(sum), static_cast<int>(rows.groups));
                     }
                   });
  }
};

const Register registered[] = {sdk::cuda_kernel<Forward>(kSource), sdk::cuda_kernel<Backward>(kSource)};

}  // namespace
}  // namespace mulligan::cuda
