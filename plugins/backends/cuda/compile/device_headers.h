// The headers that kernel sources may include (<mulligan/cuda/...>), as text for NVRTC: a node needs no
// files of them.
#pragma once

#include <span>

namespace mulligan::cuda {

struct DeviceHeader {
  const char* name;  // as it is included
  const char* text;
};

std::span<const DeviceHeader> device_headers();

}  // namespace mulligan::cuda
