// scaled_add_norm on x, a [T,d] and s [d]:  y = x + s a,  n = scale norm(y)
//   g = dy + norm'(dn):  with r = 1 / sqrt(mean(y^2) + eps):  g = dy + scale r (dn - y r^2 mean(dn y))
//   dx (+)= g,  da (+)= s g,  ds += sum over tokens of g a     (without s: 1)
//
// y is rounded to the compute dtype before it is normalised: the backward pass sees the same y.
// Determinism: rows are independent; ds goes through partial sums over fixed pieces of tokens.
#include "kernels/scaled_add_norm/signature.h"
#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::scaled_add_norm {
namespace {

struct Forward : shapes::ScaledAddNormForward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto scale = launch.number(Forward::scale), eps = launch.number(Forward::eps);
    const std::int64_t width = launch.dim(Forward::x, 1);
    const float* s = launch.data<const float>(Forward::s);
    for_rows(launch, launch.dim(Forward::x, 0), width, [&](std::int64_t row) {
      const T* x = launch.data<const T>(Forward::x) + row * width;
      const T* a = launch.data<const T>(Forward::a) + row * width;
      T* y = launch.data<T>(Forward::y) + row * width;
      if (s) {
        write_row(y, width, false, [=](std::int64_t j) { return float(x[j]) + s[j] * float(a[j]); });
      } else {
        write_row(y, width, false, [=](std::int64_t j) { return float(x[j]) + float(a[j]); });
      }
      if (!launch.has(Forward::n)) return;
      const float sum = lane_sum(width, [=](std::int64_t j) { return float(y[j]) * float(y[j]); });
      const float factor = scale * reciprocal_rms(sum, width, eps);
      write_row(launch.data<T>(Forward::n) + row * width, width, false,
                [=](std::int64_t j) { return factor * float(y[j]); });
    });
  }
};

struct Backward : shapes::ScaledAddNormBackward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return row_sums_bytes(call.dim(y, 0), call.dim(y, 1));
  }
  template <typename T>
  static void run(const Launch& launch) {
    const auto scale = launch.number(Backward::scale), eps = launch.number(Backward::eps);
    const bool accumulate_dx = launch.flag(Backward::accumulate_dx),
               accumulate_da = launch.flag(Backward::accumulate_da);
    const std::int64_t width = launch.dim(Backward::y, 1);
    const float* s = launch.data<const float>(Backward::s);
    const T* all_a = launch.data<const T>(Backward::a);
    T *all_dx = launch.data<T>(Backward::dx), *all_da = launch.data<T>(Backward::da);
    const auto add_rows = [&](float* partial, std::int64_t row) {
      const T* y = launch.data<const T>(Backward::y) + row * width;
      const T* dy = row_of<const T>(launch, Backward::dy, row, width);
      const T* dn = row_of<const T>(launch, Backward::dn, row, width);
      const auto rounded = [=](std::int64_t j) { return float(y[j]); };
      const NormGradient norm(width, scale, eps, dn, rounded);
      const T* a = all_a ? all_a + row * width : nullptr;
      T* dx = all_dx ? all_dx + row * width : nullptr;
      T* da = all_da ? all_da + row * width : nullptr;
      for_blocks(width, [=](std::int64_t column, auto count) {
        alignas(64) float block[kBlock];
        float* g = block;
        norm.fill(g, column, count, dy, dn, rounded);
        if (dx) write_row(dx + column, count, accumulate_dx, [=](std::int64_t i) { return g[i]; });
        if (da && s) {
          write_row(da + column, count, accumulate_da, [=](std::int64_t i) { return s[column + i] * g[i]; });
        } else if (da) {
          write_row(da + column, count, accumulate_da, [=](std::int64_t i) { return g[i]; });
        }
        if (!partial) return;
        write_row(partial + column, count, true, [=](std::int64_t i) { return g[i] * float(a[column + i]); });
      });
    };
    add_row_sums(launch, launch.dim(Backward::y, 0), width, launch.workspace<float>(),
                 launch.data<float>(Backward::ds), add_rows);
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::scaled_add_norm
