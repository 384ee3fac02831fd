#include "plugins/backends/cpu/cpu_kernel.h"

#include <mulligan/plugin.hpp>

#include <stdexcept>

namespace mulligan::cpu {

std::vector<mlg_kernel>& registered_kernels() {
  static std::vector<mlg_kernel> kernels;
  return kernels;
}

mlg_error guarded_prepare(const char* kernel, const char* signature, void (*check)(Checker&),
                          const mlg_launch* shapes, mlg_preparation* out) {
  return sdk::guarded([&] {
    Checker checker(kernel, signature, shapes);
    check(checker);
    out->workspace_bytes = checker.workspace_bytes();
    out->state = checker.take_state().release();
  });
}

mlg_error guarded_run(void (*run)(const Launch&), const mlg_launch* launch) {
  return sdk::guarded([&] { run(Launch(launch)); });
}

void release_state(void* state) {
  delete static_cast<KernelState*>(state);
}

}  // namespace mulligan::cpu
