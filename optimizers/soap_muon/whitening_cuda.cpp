// Launches of whitening.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/common/matrix_shape.h"
#include "optimizers/soap_muon/whitening.h"

namespace mulligan::optimizers {
namespace {

#include "whitening.cu.inc"

using sdk::CudaCall;

struct Whiten : SoapWhiten {
  static void plan(CudaCall& call) {
    call.numbers({beta2});
    call.constant("one_minus_beta2", 1.0 - call.attribute(beta2));
    const sdk::ElementPlan plan{call.size(p), 1};
    call.launch(MLG_INSTANCE(soap_whiten), plan, p, v, white, plan.count);
  }
};

struct KeepNorm : SoapKeepNorm {
  static void plan(CudaCall& call) {
    const sdk::ElementPlan plan{call.size(x), 1};
    call.launch(MLG_INSTANCE(soap_keep_norm), plan, raw, raw_norm, x, x_norm, scalars, result, plan.count);
  }
};

struct Trust : SoapTrust {
  static void plan(CudaCall& call) {
    const MatrixShape shape = MatrixShape::of(call, raw);
    const sdk::ElementPlan plan{call.size(raw), 1};
    const sdk::CudaArgument rows =
        call.workspace(static_cast<std::size_t>(sums * shape.rows) * sizeof(double));
    call.constant("columns", shape.columns);
    call.constant("matrix_rows", shape.rows);
    call.numbers({agreement});
    call.launch(MLG_INSTANCE(soap_trust_rows), {shape.rows, 1, 1},
                {MatrixShape::block_threads(shape.columns), 1, 1}, raw, white, gradient, rows);
    call.launch(MLG_INSTANCE(soap_trust_gate), {1, 1, 1}, {MatrixShape::block_threads(shape.rows), 1, 1},
                rows, scalars, gate);
    call.launch(MLG_INSTANCE(soap_trust_blend), plan, raw, white, gate, blended, plan.count);
  }
};

}  // namespace

constinit const mlg_kernel soap_whiten_cuda = sdk::cuda_kernel<Whiten>(kSource);
constinit const mlg_kernel soap_keep_norm_cuda = sdk::cuda_kernel<KeepNorm>(kSource);
constinit const mlg_kernel soap_trust_cuda = sdk::cuda_kernel<Trust>(kSource);

}  // namespace mulligan::optimizers
