#include "plugins/backends/cuda/compile/device_headers.h"

namespace mulligan::cuda {
namespace {

// One entry per header of include/mulligan/cuda that device code sees; the build makes the .inc files.
constexpr DeviceHeader kHeaders[] = {
#include "attention.cuh.inc"
#include "attention_forward.cuh.inc"
#include "column_vectors.cuh.inc"
#include "columns.cuh.inc"
#include "cross_entropy.cuh.inc"
#include "device.cuh.inc"
#include "elements.cuh.inc"
#include "fused_update.cuh.inc"
#include "heads.cuh.inc"
#include "lanes.cuh.inc"
#include "philox.cuh.inc"
#include "rotary.cuh.inc"
#include "rows.cuh.inc"
#include "vector.cuh.inc"
#include "warp.cuh.inc"
};

}  // namespace

std::span<const DeviceHeader> device_headers() {
  return kHeaders;
}

}  // namespace mulligan::cuda
