#include "kernels/matmul/signature_add.h"
#include "kernels/matmul/signature_widened.h"
#include "plugins/backends/cuda/cuda_kernel.h"
#include "plugins/backends/cuda/invariant_kernels.h"

namespace mulligan::cuda {
namespace {

#include "matmul/cuda_fixed.cu.inc"

// What a launch is told of c [batch, m, n] = a [batch, m, k] b [batch, k, n].
struct Tiles {
  std::array<std::int64_t, 3> grid;
  int m, n, k;

  // `a`, `b`: arguments of the call.
  Tiles(const CudaCall& call, std::uint32_t a, std::uint32_t b, std::int64_t batch, std::int64_t rows,
        std::int64_t columns, std::int64_t inner)
      : grid{blocks(rows) * blocks(columns), batch, 1},
        m(extent(call, a, rows)),
        n(extent(call, b, columns)),
        k(extent(call, a, inner)) {}

 private:
  static std::int64_t blocks(std::int64_t extent) { return (extent + kExtent - 1) / kExtent; }
  static int extent(const CudaCall& call, std::uint32_t argument, std::int64_t value) {
    call.require(value < (std::int64_t{1} << 31) - kExtent, argument,
                 "must have extents below 2^31 on the cuda backend");
    return static_cast<int>(value);
  }
};

// `term`, `result`: arguments of the call.
template <typename Shape>
void plan_fixed_matmul(CudaCall& call, std::uint32_t term, std::uint32_t result) {
  const shapes::Matmul::Extents e = Shape::extents(call);
  const Tiles tiles(call, Shape::a, Shape::b, e.batch, e.m, e.n, e.k);
  call.flags({Shape::transpose_a, Shape::transpose_b});
  call.numbers({Shape::alpha, Shape::beta});
  sdk::dispatch_cuda(call.dtype(Shape::a), [&]<typename T>() {
    const auto launch = [&]<typename C>() {
      call.launch(MLG_INSTANCE(fixed_matmul, T, C), tiles.grid, {kThreads, 1, 1}, Shape::a, Shape::b,
                  call.tensor(term), call.tensor(result), tiles.m, tiles.n, tiles.k);
    };
    if (call.dtype(result) == MLG_F32) {
      launch.template operator()<float>();
    } else {
      launch.template operator()<T>();
    }
  });
}

struct FixedMatmul : shapes::Matmul {
  static void plan(CudaCall& call) { plan_fixed_matmul<shapes::Matmul>(call, c, c); }
};

struct FixedMatmulAdd : shapes::MatmulAdd {
  static void plan(CudaCall& call) { plan_fixed_matmul<shapes::MatmulAdd>(call, term, c); }
};

struct FixedWidenedMatmul : shapes::WidenedMatmul {
  static void plan(CudaCall& call) {
    const Extents e = extents(call);
    const Tiles tiles(call, a, b, 1, e.m, e.n, e.k);
    call.flags({transpose_b});
    call.numbers({beta});
    const auto launch = [&]<typename W>() {
      call.launch(MLG_INSTANCE(widened_matmul, W), tiles.grid, {kThreads, 1, 1}, a, b, c, tiles.m, tiles.n,
                  tiles.k);
    };
    if (call.dtype(b) == MLG_BF16) {
      launch.template operator()<bf16>();
    } else {
      launch.template operator()<f16>();
    }
  }
};

const Register registered(sdk::cuda_kernel<FixedWidenedMatmul>(kSource));
const mlg_kernel kernels[] = {sdk::cuda_kernel<FixedMatmul>(kSource),
                              sdk::cuda_kernel<FixedMatmulAdd>(kSource)};

}  // namespace

std::span<const mlg_kernel> fixed_matmul_kernels() {
  return kernels;
}

}  // namespace mulligan::cuda
