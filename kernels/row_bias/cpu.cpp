// row_bias on x [T,d] and bias [d]:  y = x + bias, or bias alone without x
//   dbias += sum over tokens of dy
//
// Determinism: rows are independent; dbias goes through partial sums over fixed pieces of tokens.
#include "kernels/row_bias/signature.h"

#include "plugins/backends/cpu/math/row_math.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::row_bias {
namespace {

struct Forward : shapes::RowBiasForward {
  static void run(const Launch& launch) {
    const std::int64_t width = launch.dim(Forward::y, 1);
    const float* bias = launch.data<const float>(Forward::bias);
    dispatch_compute(launch.dtype(Forward::y), [&]<typename T>() {
      const T* all_x = launch.data<const T>(Forward::x);
      for_rows(launch, launch.dim(Forward::y, 0), width, [&](std::int64_t row) {
        T* y = launch.data<T>(Forward::y) + row * width;
        const T* x = all_x ? all_x + row * width : nullptr;
        if (x) {
          write_row(y, width, false, [=](std::int64_t j) { return float(x[j]) + bias[j]; });
        } else {
          write_row(y, width, false, [=](std::int64_t j) { return bias[j]; });
        }
      });
    });
  }
};

struct Backward : shapes::RowBiasBackward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return row_sums_bytes(call.dim(dy, 0), call.dim(dy, 1));
  }
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t width = launch.dim(Backward::dy, 1);
    const T* all_dy = launch.data<const T>(Backward::dy);
    const auto add_rows = [=](float* partial, std::int64_t row) {
      const T* dy = all_dy + row * width;
      write_row(partial, width, true, [=](std::int64_t j) { return float(dy[j]); });
    };
    add_row_sums(launch, launch.dim(Backward::dy, 0), width, launch.workspace<float>(),
                 launch.data<float>(Backward::dbias), add_rows);
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::row_bias
