// scaled_add_norm on x, a [T,d] and s [d]:  y = x + s a,  n = scale norm(y)
//   g = dy + norm'(dn):  with r = 1 / sqrt(mean(y^2) + eps):  g = dy + scale r (dn - y r^2 mean(dn y))
//   dx = g,  da = s g,  ds += sum over tokens of g a
//
// y is rounded to the compute dtype before it is normalised: the backward pass sees the same y.
// Determinism: rows are independent; ds goes through partial sums over fixed pieces of tokens.
#include "plugins/backends/common/shapes/scaled_add_norm.h"
#include "plugins/backends/cpu/kernels/row_math.h"

namespace mulligan::cpu {
namespace {

using Forward = shapes::ScaledAddNormForward;

void run_forward(const Launch& launch) {
  const auto scale = static_cast<float>(launch.attribute(0)), eps = static_cast<float>(launch.attribute(1));
  const std::int64_t width = launch.dim(0, 1);
  const float* s = launch.data<const float>(2);
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    launch.parallel_for(launch.dim(0, 0), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* x = launch.data<const T>(0) + row * width;
        const T* a = launch.data<const T>(1) + row * width;
        T* y = launch.data<T>(3) + row * width;
        write_row(y, width, false, [=](std::int64_t j) { return float(x[j]) + s[j] * float(a[j]); });
        if (!launch.has(4)) continue;
        const float sum = lane_sum(width, [=](std::int64_t j) { return float(y[j]) * float(y[j]); });
        const float factor = scale * reciprocal_rms(sum, width, eps);
        write_row(launch.data<T>(4) + row * width, width, false,
                  [=](std::int64_t j) { return factor * float(y[j]); });
      }
    });
  });
}

enum { kY, kA, kS, kDy, kDn, kDx, kDa, kDs };

void check_backward(Checker& check) {
  shapes::ScaledAddNormBackward::check(check);
  check.workspace(row_sums_bytes(check.dim(kY, 0), check.dim(kY, 1)));
}

template <typename T>
void backward(const Launch& launch) {
  const auto scale = static_cast<float>(launch.attribute(0)), eps = static_cast<float>(launch.attribute(1));
  const bool accumulate_dx = launch.attribute(2) != 0, accumulate_da = launch.attribute(3) != 0;
  const std::int64_t width = launch.dim(kY, 1);
  const float* s = launch.data<const float>(kS);
  const T* all_a = launch.data<const T>(kA);
  T *all_dx = launch.data<T>(kDx), *all_da = launch.data<T>(kDa);
  const auto add_rows = [&](float* partial, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* y = launch.data<const T>(kY) + row * width;
      const T* dy = launch.has(kDy) ? launch.data<const T>(kDy) + row * width : nullptr;
      const T* dn = launch.has(kDn) ? launch.data<const T>(kDn) + row * width : nullptr;
      float factor = 0, along = 0;  // norm'(dn) = factor dn - along y
      if (dn) {
        const auto [squares, product] = lane_sums<2>(width, [=](std::int64_t j) {
          return std::array{float(y[j]) * float(y[j]), float(y[j]) * float(dn[j])};
        });
        const float r = reciprocal_rms(squares, width, eps);
        factor = scale * r;
        along = factor * r * r * product / static_cast<float>(width);
      }
      const T* a = all_a + row * width;
      T* dx = all_dx ? all_dx + row * width : nullptr;
      T* da = all_da ? all_da + row * width : nullptr;
      for_blocks(width, [=](std::int64_t column, auto count) {
        alignas(64) float block[kBlock];
        float* g = block;
        if (dn) {
          fill_row(g, count, [=](std::int64_t i) {
            const std::int64_t j = column + i;
            return factor * float(dn[j]) - along * float(y[j]);
          });
        }
        if (dy) write_row(g, count, dn != nullptr, [=](std::int64_t i) { return float(dy[column + i]); });
        if (!dy && !dn) fill_row(g, count, [](std::int64_t) { return 0.0f; });
        if (dx) write_row(dx + column, count, accumulate_dx, [=](std::int64_t i) { return g[i]; });
        if (da)
          write_row(da + column, count, accumulate_da, [=](std::int64_t i) { return s[column + i] * g[i]; });
        if (!partial) return;
        write_row(partial + column, count, true, [=](std::int64_t i) { return g[i] * float(a[column + i]); });
      });
    }
  };
  add_row_sums(launch, launch.dim(kY, 0), width, launch.workspace<float>(), launch.data<float>(kDs),
               add_rows);
}

void run_backward(const Launch& launch) {
  dispatch_compute(launch.dtype(kY), [&]<typename T>() { backward<T>(launch); });
}

MULLIGAN_CPU_KERNEL(scaled_add_norm_fwd, Forward::signature, Forward::check, run_forward)
MULLIGAN_CPU_KERNEL(scaled_add_norm_bwd, shapes::ScaledAddNormBackward::signature, check_backward,
                    run_backward)

}  // namespace
}  // namespace mulligan::cpu
