// Launches of basis.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/common/matrix_shape.h"
#include "optimizers/soap_muon/basis.h"

namespace mulligan::optimizers {
namespace {

#include "optimizers/soap_muon/basis.cu"

constexpr char kSource[] =
#include "basis.cu.inc"
    ;

using sdk::CudaCall;

struct Sort : SoapSort {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check_arguments(call);
    const std::int64_t n = call.dim(basis, 0);
    const sdk::ElementPlan by_row{n, 1}, plan{call.size(sorted), 1};
    const sdk::CudaArgument values = call.workspace(static_cast<std::size_t>(n) * sizeof(double));
    call.constant("size", n);
    call.launch(MLG_INSTANCE(soap_sort_values), {n, 1, 1}, {MatrixShape::block_threads(n), 1, 1},
                call.tensor(basis), call.tensor(projected), values);
    call.launch(MLG_INSTANCE(soap_sort_ranks), by_row.grid(), by_row.block(), values, call.tensor(order));
    call.launch(MLG_INSTANCE(soap_sort_rows), plan.grid(), plan.block(), call.tensor(projected),
                call.tensor(order), call.tensor(sorted), plan.count);
  }
};

struct Permute : SoapPermute {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const sdk::ElementPlan plan{call.size(x), 1};
    call.constant("columns", call.dim(x, 1));
    call.launch(MLG_INSTANCE(soap_permute), plan.grid(), plan.block(), call.tensor(x), call.tensor(row_order),
                call.tensor(column_order), call.tensor(permuted), plan.count);
  }
};

struct Eigenvectors : SoapEigenvectors {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check_arguments(call);
    const std::int64_t n = call.dim(gram, 0);
    const sdk::CudaArgument turned = call.workspace(static_cast<std::size_t>(n * n) * sizeof(double)),
                            values = call.workspace(static_cast<std::size_t>(n) * sizeof(double));
    call.constant("size", n);
    call.constant("sweeps", static_cast<std::int64_t>(SoapEigenvectors::sweeps));
    call.constant("tolerance", SoapEigenvectors::tolerance);
    const auto warps = static_cast<std::uint32_t>(std::clamp<std::int64_t>(n / 2, 1, 32));
    call.launch(MLG_INSTANCE(soap_eigenvectors), {1, 1, 1}, {32 * warps, 1, 1}, call.tensor(gram),
                call.tensor(scalars), call.tensor(rows), turned, values);
  }
};

struct FirstRows : SoapFirstRows {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const sdk::ElementPlan plan{call.size(rows), 1};
    call.constant("size", call.dim(rows, 0));
    call.constant("image_rows", call.dim(image, 0));
    call.launch(MLG_INSTANCE(soap_first_rows), plan.grid(), plan.block(), call.tensor(image),
                call.tensor(scalars), call.tensor(rows), plan.count);
  }
};

}  // namespace

mlg_kernel soap_sort_cuda() {
  return sdk::cuda_kernel<Sort>();
}
mlg_kernel soap_permute_cuda() {
  return sdk::cuda_kernel<Permute>();
}
mlg_kernel soap_eigenvectors_cuda() {
  return sdk::cuda_kernel<Eigenvectors>();
}
mlg_kernel soap_first_rows_cuda() {
  return sdk::cuda_kernel<FirstRows>();
}

}  // namespace mulligan::optimizers
