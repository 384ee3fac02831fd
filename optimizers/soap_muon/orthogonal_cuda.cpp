// Launches of orthogonal.cu.
#include <mulligan/cuda/element_plan.hpp>

#include "optimizers/soap_muon/orthogonal.h"

namespace mulligan::optimizers {
namespace {

#include "orthogonal.cu.inc"

using sdk::CudaCall;

struct Reflect : SoapReflect {
  static void plan(CudaCall& call) {
    call.constant("size", call.dim(rows, 1));
    call.constant("panel_rows", call.dim(rows, 0));
    call.constant("first", static_cast<std::int64_t>(call.attribute(SoapReflect::first)));
    call.launch(MLG_INSTANCE(soap_reflect), {1, 1, 1},
                {static_cast<std::uint32_t>(32 * call.dim(rows, 0)), 1, 1}, rows, reflectors, triangle);
  }
};

struct Identity : SoapIdentity {
  static void plan(CudaCall& call) {
    const sdk::ElementPlan plan{call.size(x), 1};
    call.constant("size", call.dim(x, 0));
    call.launch(MLG_INSTANCE(soap_identity), plan, x, plan.count);
  }
};

}  // namespace

constinit const mlg_kernel soap_reflect_cuda = sdk::cuda_kernel<Reflect>(kSource);
constinit const mlg_kernel soap_identity_cuda = sdk::cuda_kernel<Identity>(kSource);

}  // namespace mulligan::optimizers
