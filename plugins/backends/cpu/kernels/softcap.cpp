// softcap, element by element:  y = cap tanh(z / cap)
//   dz = dy (1 - tanh(z / cap)^2)
//
// Determinism: elements are independent.
#include "plugins/backends/common/shapes/softcap.h"

#include "plugins/backends/cpu/kernels/row_math.h"
#include "plugins/backends/cpu/vector_math.h"

namespace mulligan::cpu {
namespace {

using Forward = shapes::SoftcapForward;
using Backward = shapes::SoftcapBackward;

void run_forward(const Launch& launch) {
  const auto cap = static_cast<float>(launch.attribute(0));
  const float inverse = 1.0f / cap;
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    for_elements(launch, launch.size(0), [&](std::int64_t begin, std::int64_t end) {
      const T* z = launch.data<const T>(0) + begin;
      write_row(launch.data<T>(1) + begin, end - begin, false,
                [=](std::int64_t i) { return cap * fast_tanh(float(z[i]) * inverse); });
    });
  });
}

void run_backward(const Launch& launch) {
  const float inverse = 1.0f / static_cast<float>(launch.attribute(0));
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    for_elements(launch, launch.size(0), [&](std::int64_t begin, std::int64_t end) {
      const T* z = launch.data<const T>(0) + begin;
      const T* dy = launch.data<const T>(1) + begin;
      write_row(launch.data<T>(2) + begin, end - begin, launch.attribute(1) != 0, [=](std::int64_t i) {
        return float(dy[i]) * sdk::fast_tanh_and_slope(float(z[i]) * inverse).slope;
      });
    });
  });
}

MULLIGAN_CPU_KERNEL(softcap_fwd, Forward::signature, Forward::check, run_forward)
MULLIGAN_CPU_KERNEL(softcap_bwd, Backward::signature, Backward::check, run_backward)

}  // namespace
}  // namespace mulligan::cpu
