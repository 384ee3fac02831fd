// linear_leaky_relu_squared: a matmul whose result passes the MLP's activation tile by tile, while the tile is in
// the cache.
//   forward   u = x W^T,  y = f(u)          f(u) = (u > 0 ? u : slope u)^2
//   backward  du = (dy W) f'(u)
// Both round u and dy W to their dtype first: the bits are those of matmul and leaky_relu_squared.
//
// Determinism: as of matmul.
#include <functional>

#include "kernels/leaky_relu_squared/signature_linear.h"

#include "kernels/leaky_relu_squared/cpu_math.h"
#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/tiled_matmul.h"

namespace mulligan::cpu::linear_leaky_relu_squared {
namespace {

// The matmul [rows, k] x op(w) = [rows, n] of a call.
std::unique_ptr<TiledMatmul> matmul_of(const Launch& call, std::uint32_t a, std::uint32_t result,
                                       bool transpose_b) {
  TiledMatmulShape shape;
  shape.m = call.dim(a, 0);
  shape.k = call.dim(a, 1);
  shape.n = call.dim(result, 1);
  shape.transpose_b = transpose_b;
  shape.input = shape.output = call.dtype(a);
  return std::make_unique<TiledMatmul>(shape);
}

struct Forward : shapes::LinearLeakyReluSquaredForward {
  using State = TiledMatmul;
  static std::unique_ptr<TiledMatmul> prepare(const Launch& call) { return matmul_of(call, x, y, true); }
  template <typename T>
  static void run(const Launch& launch) {
    const auto slope = launch.number(Forward::slope);
    T* y = launch.data<T>(Forward::y);
    T* u = launch.has(Forward::u) ? launch.data<T>(Forward::u) : y;  // in place if u is not needed
    const auto finish = [=](std::int64_t at, std::int64_t count) {
      const T* from = u + at;
      fill_row(y + at, count, [=](std::int64_t i) { return leaky_relu_squared(from[i], slope); });
    };
    // By reference: a copy of it in a std::function would take memory from the heap, on the step path.
    launch.state<const TiledMatmul>()->run(launch, launch.tensor(x).data, launch.tensor(w).data, u,
                                           std::cref(finish));
  }
};

struct Backward : shapes::LinearLeakyReluSquaredBackward {
  using State = TiledMatmul;
  static std::unique_ptr<TiledMatmul> prepare(const Launch& call) { return matmul_of(call, dy, du, false); }
  template <typename T>
  static void run(const Launch& launch) {
    const auto slope = launch.number(Backward::slope);
    const float below = 2.0f * slope * slope;
    const T* u = launch.data<const T>(Backward::u);
    T* du = launch.data<T>(Backward::du);
    const auto finish = [=](std::int64_t at, std::int64_t count) {
      const T* value = u + at;
      T* row = du + at;
      fill_row(row, count,
               [=](std::int64_t i) { return float(row[i]) * leaky_relu_squared_slope(value[i], below); });
    };
    launch.state<const TiledMatmul>()->run(launch, launch.tensor(dy).data, launch.tensor(w).data, du,
                                           std::cref(finish));
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::linear_leaky_relu_squared
