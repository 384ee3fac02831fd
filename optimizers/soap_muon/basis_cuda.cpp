// Launches of basis.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/common/matrix_shape.h"
#include "optimizers/soap_muon/basis.h"

namespace mulligan::optimizers {
namespace {

#include "basis.cu.inc"

using sdk::CudaCall;

struct Sort : SoapSort {
  static void plan(CudaCall& call) {
    const std::int64_t n = call.dim(basis, 0);
    const sdk::ElementPlan by_row{n, 1}, plan{call.size(sorted), 1};
    const sdk::CudaArgument values = call.workspace(static_cast<std::size_t>(n) * sizeof(double));
    call.constant("size", n);
    call.launch(MLG_INSTANCE(soap_sort_values), {n, 1, 1}, {MatrixShape::block_threads(n), 1, 1}, basis,
                projected, values);
    call.launch(MLG_INSTANCE(soap_sort_ranks), by_row, values, order);
    call.launch(MLG_INSTANCE(soap_sort_rows), plan, projected, order, sorted, plan.count);
  }
};

struct Permute : SoapPermute {
  static void plan(CudaCall& call) {
    const sdk::ElementPlan plan{call.size(x), 1};
    call.constant("columns", call.dim(x, 1));
    call.launch(MLG_INSTANCE(soap_permute), plan, x, row_order, column_order, permuted, plan.count);
  }
};

struct Eigenvectors : SoapEigenvectors {
  static void plan(CudaCall& call) {
    const std::int64_t n = call.dim(gram, 0);
    const sdk::CudaArgument turned = call.workspace(static_cast<std::size_t>(n * n) * sizeof(double)),
                            values = call.workspace(static_cast<std::size_t>(n) * sizeof(double));
    call.constant("size", n);
    call.constant("sweeps", static_cast<std::int64_t>(SoapEigenvectors::sweeps));
    call.constant("tolerance", SoapEigenvectors::tolerance);
    const auto warps = static_cast<std::uint32_t>(std::clamp<std::int64_t>(n / 2, 1, 32));
    call.launch(MLG_INSTANCE(soap_eigenvectors), {1, 1, 1}, {32 * warps, 1, 1}, gram, scalars, rows, turned,
                values);
  }
};

struct FirstRows : SoapFirstRows {
  static void plan(CudaCall& call) {
    const sdk::ElementPlan plan{call.size(rows), 1};
    call.constant("size", call.dim(rows, 0));
    call.constant("image_rows", call.dim(image, 0));
    call.launch(MLG_INSTANCE(soap_first_rows), plan, image, scalars, rows, plan.count);
  }
};

}  // namespace

constinit const mlg_kernel soap_sort_cuda = sdk::cuda_kernel<Sort>(kSource);
constinit const mlg_kernel soap_permute_cuda = sdk::cuda_kernel<Permute>(kSource);
constinit const mlg_kernel soap_eigenvectors_cuda = sdk::cuda_kernel<Eigenvectors>(kSource);
constinit const mlg_kernel soap_first_rows_cuda = sdk::cuda_kernel<FirstRows>(kSource);

}  // namespace mulligan::optimizers
