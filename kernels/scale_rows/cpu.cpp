// scale_rows on w [r,c] and s [r]:  y[i] = s[i] w[i]
//   dw[i] += s[i] dy[i],  ds[i] += sum over columns of dy[i] w[i]   (dy, dw f32)
//
// Determinism: rows are independent; a row's sum has a fixed order.
#include "kernels/scale_rows/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::scale_rows {
namespace {

struct Forward : shapes::ScaleRowsForward {
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t width = launch.dim(w, 1);
    const float* scales = launch.data<const float>(s);
    for_rows(launch, launch.dim(w, 0), width, [&](std::int64_t row) {
      const T* from = launch.data<const T>(w) + row * width;
      fill_row(launch.data<T>(y) + row * width, width,
               [=, scale = scales[row]](std::int64_t j) { return scale * float(from[j]); });
    });
  }
};

struct Backward : shapes::ScaleRowsBackward {
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t width = launch.dim(w, 1);
    const float* scales = launch.data<const float>(s);
    float *all_dw = launch.data<float>(dw), *all_ds = launch.data<float>(ds);
    for_rows(launch, launch.dim(w, 0), width, [&](std::int64_t row) {
      const T* values = launch.data<const T>(w) + row * width;
      const float* upstream = launch.data<const float>(dy) + row * width;
      if (all_dw) {
        write_row(all_dw + row * width, width, true,
                  [=, scale = scales[row]](std::int64_t j) { return scale * upstream[j]; });
      }
      if (all_ds)
        all_ds[row] += lane_sum(width, [=](std::int64_t j) { return upstream[j] * float(values[j]); });
    });
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::scale_rows
