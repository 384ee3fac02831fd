#include "plugins/backends/cuda/triton/compiled_file.h"

#include <cstdlib>

namespace mulligan::cuda::triton {
namespace {

int number_of(const std::string& architecture) {
  return architecture.starts_with("sm_") ? std::atoi(architecture.c_str() + 3) : 0;
}

}  // namespace

bool ptx_runs_on(const std::string& target, const std::string& device) {
  const int wanted = number_of(target), present = number_of(device);
  if (wanted == 0) return false;
  if (target.back() == 'a') return present == wanted;
  if (target.back() == 'f') return present / 10 == wanted / 10 && present >= wanted;
  return present >= wanted;
}

}  // namespace mulligan::cuda::triton
