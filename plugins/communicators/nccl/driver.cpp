#include "plugins/communicators/nccl/driver.h"

#include <stdexcept>

namespace mulligan::nccl_ranks {

void CudaDriver::check(int result, const char* call) const {
  if (result == 0) return;
  const char* text = nullptr;
  GetErrorString(result, &text);
  throw std::runtime_error(std::string("cu") + call + " failed: " + (text ? text : "an unknown error"));
}

}  // namespace mulligan::nccl_ranks
