// residual_mix_norm on x, x0 [T,d] and mix [2,d]:  y = mix0 x + mix1 x0,  n = scale norm(y)
//   g = dy + norm'(dn):  with r = 1 / sqrt(mean(y^2) + eps):  g = dy + scale r (dn - y r^2 mean(dn y))
//   dx (+)= mix0 g,  dx0 (+)= mix1 g,  dmix += (sum over tokens of g x, of g x0)
//
// n comes from y before y is rounded to the compute dtype, so it is the same whether y is kept or not.
// Determinism: rows are independent; dmix goes through partial sums over fixed pieces of tokens.
#include "kernels/residual_mix_norm/signature.h"
#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::residual_mix_norm {
namespace {

struct Forward : shapes::ResidualMixNormForward {
  template <typename T>
  static void run(const Launch& launch) {
    const auto scale = launch.number(Forward::scale), eps = launch.number(Forward::eps);
    const std::int64_t width = launch.dim(Forward::x, 1);
    const float* mix = launch.data<const float>(Forward::mix);
    for_rows(launch, launch.dim(Forward::x, 0), width, [&](std::int64_t row) {
      const T* x = launch.data<const T>(Forward::x) + row * width;
      const T* x0 = launch.data<const T>(Forward::x0) + row * width;
      const auto mixed = [=](std::int64_t j) { return mix[j] * float(x[j]) + mix[width + j] * float(x0[j]); };
      const float sum = lane_sum(width, [=](std::int64_t j) {
        const float y = mixed(j);
        return y * y;
      });
      const float factor = scale * reciprocal_rms(sum, width, eps);
      if (launch.has(Forward::y)) write_row(launch.data<T>(Forward::y) + row * width, width, false, mixed);
      write_row(launch.data<T>(Forward::n) + row * width, width, false,
                [=](std::int64_t j) { return factor * mixed(j); });
    });
  }
};

struct Backward : shapes::ResidualMixNormBackward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return row_sums_bytes(call.dim(x, 0), call.size(mix));
  }
  template <typename T>
  static void run(const Launch& launch) {
    const auto scale = launch.number(Backward::scale), eps = launch.number(Backward::eps);
    const bool accumulate_dx = launch.flag(Backward::accumulate_dx),
               accumulate_dx0 = launch.flag(Backward::accumulate_dx0);
    const std::int64_t width = launch.dim(Backward::x, 1);
    const float* mix = launch.data<const float>(Backward::mix);
    T *all_dx = launch.data<T>(Backward::dx), *all_dx0 = launch.data<T>(Backward::dx0);
    const auto add_rows = [&](float* partial, std::int64_t row) {
      const T* x = launch.data<const T>(Backward::x) + row * width;
      const T* x0 = launch.data<const T>(Backward::x0) + row * width;
      const T* dy = row_of<const T>(launch, Backward::dy, row, width);
      const T* dn = row_of<const T>(launch, Backward::dn, row, width);
      const auto mixed = [=](std::int64_t j) { return mix[j] * float(x[j]) + mix[width + j] * float(x0[j]); };
      const NormGradient norm(width, scale, eps, dn, mixed);
      T* dx = all_dx ? all_dx + row * width : nullptr;
      T* dx0 = all_dx0 ? all_dx0 + row * width : nullptr;
      for_blocks(width, [=](std::int64_t column, auto count) {
        alignas(64) float block[kBlock];
        float* g = block;
        norm.fill(g, column, count, dy, dn, mixed);
        const float* mix0 = mix + column;
        const float* mix1 = mix + width + column;
        if (dx) write_row(dx + column, count, accumulate_dx, [=](std::int64_t i) { return mix0[i] * g[i]; });
        if (dx0)
          write_row(dx0 + column, count, accumulate_dx0, [=](std::int64_t i) { return mix1[i] * g[i]; });
        if (!partial) return;
        write_row(partial + column, count, true, [=](std::int64_t i) { return g[i] * float(x[column + i]); });
        write_row(partial + width + column, count, true,
                  [=](std::int64_t i) { return g[i] * float(x0[column + i]); });
      });
    };
    add_row_sums(launch, launch.dim(Backward::x, 0), 2 * width, launch.workspace<float>(),
                 launch.data<float>(Backward::dmix), add_rows);
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::residual_mix_norm
