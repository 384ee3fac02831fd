// Launches of orthogonal.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/soap_muon/orthogonal.h"

namespace mulligan::optimizers {
namespace {

#include "optimizers/soap_muon/orthogonal.cu"

constexpr char kSource[] =
#include "orthogonal.cu.inc"
    ;

using sdk::CudaCall;

struct Reflect : SoapReflect {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    call.constant("size", call.dim(rows, 1));
    call.constant("panel_rows", call.dim(rows, 0));
    call.constant("first", static_cast<std::int64_t>(call.attribute(SoapReflect::first)));
    call.launch(MLG_INSTANCE(soap_reflect), {1, 1, 1},
                {static_cast<std::uint32_t>(32 * call.dim(rows, 0)), 1, 1}, call.tensor(rows),
                call.tensor(reflectors), call.tensor(triangle));
  }
};

struct Identity : SoapIdentity {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const sdk::ElementPlan plan{call.size(x), 1};
    call.constant("size", call.dim(x, 0));
    call.launch(MLG_INSTANCE(soap_identity), plan.grid(), plan.block(), call.tensor(x), plan.count);
  }
};

}  // namespace

mlg_kernel soap_reflect_cuda() {
  return sdk::cuda_kernel<Reflect>();
}
mlg_kernel soap_identity_cuda() {
  return sdk::cuda_kernel<Identity>();
}

}  // namespace mulligan::optimizers
