#include "plugins/backends/cuda/calls/matmul_call.h"

namespace mulligan::cuda {

MatmulCall::MatmulCall(Device& device, const mlg_kernel& kernel, const mlg_call& call)
    : memory_(device, kernel, call),
      gemm_(device.gemm(gemm_shape(kernel, memory_.arguments().launch()))),
      places_(product_arguments(kernel)) {}

void MatmulCall::bind(void* const* addresses, void* workspace) {
  memory_.bind(addresses, workspace, workspace_bytes());
}

std::uint64_t MatmulCall::choice() {
  memory_.require_bound();
  gemm_->make_ready();
  return 0;
}

CallWork MatmulCall::work() {
  memory_.require_bound();
  return {0, 1, gemm_->measurement()};
}

void MatmulCall::run() {
  memory_.require_bound();
  memory_.mark_outputs_unwritten();
  gemm_->run(memory_.tensor(places_.a), memory_.tensor(places_.b), memory_.tensor(places_.term),
             memory_.tensor(places_.c), memory_.workspace());
}

}  // namespace mulligan::cuda
