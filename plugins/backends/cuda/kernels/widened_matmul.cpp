// Launches of widened_matmul.cu.
#include <mulligan/cuda_kernel.hpp>

#include "plugins/backends/common/core_kernels.h"
#include "plugins/backends/common/shapes/widened_matmul.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/widened_matmul.cu"

constexpr char kSource[] =
#include "widened_matmul.cu.inc"
    ;

using sdk::CudaCall;

struct Kernel : shapes::WidenedMatmul {
  static constexpr const char* source = kSource;
  static void plan(CudaCall& call) {
    check(call);
    const Extents e = extents(call);
    for (const std::uint32_t argument : {a, b}) {
      for (int axis = 0; axis < 2; ++axis) {
        call.require(call.dim(argument, axis) < (std::int64_t{1} << 31) - kExtent, argument,
                     "must have extents below 2^31 on the cuda backend");
      }
    }
    call.constant("transpose_b", call.attribute(transpose_b) != 0);
    call.constant("beta", call.attribute(beta));
    const auto blocks = [](std::int64_t extent) { return (extent + kExtent - 1) / kExtent; };
    const auto launch = [&]<typename W>() {
      call.launch(MLG_INSTANCE(widened_matmul, W), {blocks(e.m) * blocks(e.n), 1, 1}, {kThreads, 1, 1},
                  call.tensor(a), call.tensor(b), call.tensor(c), static_cast<int>(e.m),
                  static_cast<int>(e.n), static_cast<int>(e.k));
    };
    if (call.dtype(b) == MLG_BF16) {
      launch.template operator()<bf16>();
    } else {
      launch.template operator()<f16>();
    }
  }
};

const backends::Register registered(sdk::cuda_kernel<Kernel>());

}  // namespace
}  // namespace mulligan::cuda
