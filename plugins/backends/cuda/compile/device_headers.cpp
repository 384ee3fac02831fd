#include "plugins/backends/cuda/compile/device_headers.h"

namespace mulligan::cuda {
namespace {

// One entry per header of include/mulligan/cuda that device code sees; the build makes
// the .inc files.
constexpr DeviceHeader kHeaders[] = {
    {
        "mulligan/cuda/attention.cuh",
#include "attention.cuh.inc"
    },
    {
        "mulligan/cuda/attention_forward.cuh",
#include "attention_forward.cuh.inc"
    },
    {
        "mulligan/cuda/column_vectors.cuh",
#include "column_vectors.cuh.inc"
    },
    {
        "mulligan/cuda/columns.cuh",
#include "columns.cuh.inc"
    },
    {
        "mulligan/cuda/cross_entropy.cuh",
#include "cross_entropy.cuh.inc"
    },
    {
        "mulligan/cuda/device.cuh",
#include "device.cuh.inc"
    },
    {
        "mulligan/cuda/elements.cuh",
#include "elements.cuh.inc"
    },
    {
        "mulligan/cuda/fused_update.cuh",
#include "fused_update.cuh.inc"
    },
    {
        "mulligan/cuda/heads.cuh",
#include "heads.cuh.inc"
    },
    {
        "mulligan/cuda/lanes.cuh",
#include "lanes.cuh.inc"
    },
    {
        "mulligan/cuda/philox.cuh",
#include "philox.cuh.inc"
    },
    {
        "mulligan/cuda/rotary.cuh",
#include "rotary.cuh.inc"
    },
    {
        "mulligan/cuda/rows.cuh",
#include "rows.cuh.inc"
    },
    {
        "mulligan/cuda/vector.cuh",
#include "vector.cuh.inc"
    },
    {
        "mulligan/cuda/warp.cuh",
#include "warp.cuh.inc"
    },
};

}  // namespace

std::span<const DeviceHeader> device_headers() {
  return kHeaders;
}

}  // namespace mulligan::cuda
