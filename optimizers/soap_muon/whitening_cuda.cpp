// Launches of whitening.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/common/matrix_shape.h"
#include "optimizers/soap_muon/whitening.h"

namespace mulligan::optimizers {
namespace {

#include "optimizers/soap_muon/whitening.cu"

constexpr char kSource[] =
#include "whitening.cu.inc"
    ;

using sdk::CudaCall;

struct Whiten : SoapWhiten {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.numbers({beta2});
    call.constant("one_minus_beta2", 1.0 - call.attribute(beta2));
    const sdk::ElementPlan plan{call.size(p), 1};
    call.launch(MLG_INSTANCE(soap_whiten), plan.grid(), plan.block(), call.tensor(p), call.tensor(v),
                call.tensor(white), plan.count);
  }
};

struct KeepNorm : SoapKeepNorm {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const sdk::ElementPlan plan{call.size(x), 1};
    call.launch(MLG_INSTANCE(soap_keep_norm), plan.grid(), plan.block(), call.tensor(raw),
                call.tensor(raw_norm), call.tensor(x), call.tensor(x_norm), call.tensor(scalars),
                call.tensor(result), plan.count);
  }
};

struct Trust : SoapTrust {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check_arguments(call);
    const MatrixShape shape = MatrixShape::of(call, raw);
    const sdk::ElementPlan plan{call.size(raw), 1};
    const sdk::CudaArgument rows =
        call.workspace(static_cast<std::size_t>(sums * shape.rows) * sizeof(double));
    call.constant("columns", shape.columns);
    call.constant("matrix_rows", shape.rows);
    call.numbers({agreement});
    call.launch(MLG_INSTANCE(soap_trust_rows), {shape.rows, 1, 1},
                {MatrixShape::block_threads(shape.columns), 1, 1}, call.tensor(raw), call.tensor(white),
                call.tensor(gradient), rows);
    call.launch(MLG_INSTANCE(soap_trust_gate), {1, 1, 1}, {MatrixShape::block_threads(shape.rows), 1, 1},
                rows, call.tensor(scalars), call.tensor(gate));
    call.launch(MLG_INSTANCE(soap_trust_blend), plan.grid(), plan.block(), call.tensor(raw),
                call.tensor(white), call.tensor(gate), call.tensor(blended), plan.count);
  }
};

}  // namespace

mlg_kernel soap_whiten_cuda() {
  return sdk::cuda_kernel<Whiten>();
}
mlg_kernel soap_keep_norm_cuda() {
  return sdk::cuda_kernel<KeepNorm>();
}
mlg_kernel soap_trust_cuda() {
  return sdk::cuda_kernel<Trust>();
}

}  // namespace mulligan::optimizers
