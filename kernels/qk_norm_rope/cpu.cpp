// qk_norm_rope on x [T,G,h]: each head as in head_rotation.h, gain and dgain [G].
//
// Determinism: heads are independent; dgain goes through partial sums over fixed pieces of tokens.
#include "kernels/qk_norm_rope/cpu_head_rotation.h"
#include "kernels/qk_norm_rope/signature.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::qk_norm_rope {
namespace {

using Forward = shapes::QkNormRopeForward;
using Backward = shapes::QkNormRopeBackward;

template <typename T, int kWidth, int kHalf>
void forward(const Launch& launch) {
  const Rotation rotation(launch);
  const std::int64_t heads = launch.dim(Forward::x, 1), width = launch.dim(Forward::x, 2);
  const T* x = launch.data<const T>(Forward::x);
  T* y = launch.data<T>(Forward::y);
  launch.parallel_for(
      launch.dim(Forward::x, 0), row_grain(heads * width), [=](std::int64_t begin, std::int64_t end) {
        HeadRotation<kWidth, kHalf> rotate(rotation, width);
        for (std::int64_t t = begin; t < end; ++t) {
          for (std::int64_t head = 0; head < heads; ++head) {
            const std::int64_t at = (t * heads + head) * rotate.width;
            rotate.forward(x + at, rotation.gain ? rotation.gain[head] : 1.0f, rotation.offset(t), y + at);
          }
        }
      });
}

struct RunForward : Forward {
  template <typename T>
  static void run(const Launch& launch) {
    dispatch_head(launch.dim(x, 2), Rotation(launch).half,
                  [&]<int kWidth, int kHalf>() { forward<T, kWidth, kHalf>(launch); });
  }
};

template <typename T, int kWidth, int kHalf>
void backward(const Launch& launch) {
  const Rotation rotation(launch);
  const std::int64_t heads = launch.dim(Backward::x, 1), width = launch.dim(Backward::x, 2);
  const T* x = launch.data<const T>(Backward::x);
  const T* dy = launch.data<const T>(Backward::dy);
  T* dx = launch.data<T>(Backward::dx);
  const bool accumulate = launch.flag(Backward::accumulate_dx);
  const auto add_tokens = [=](float* partial, std::int64_t begin, std::int64_t end) {
    HeadRotation<kWidth, kHalf> rotate(rotation, width);
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t at = (t * heads + head) * rotate.width;
        partial[head] += rotate.backward(x + at, dy + at, rotation.gain ? rotation.gain[head] : 1.0f,
                                         rotation.offset(t), dx + at, accumulate);
      }
    }
  };
  float* total = launch.workspace<float>();  // [G]; added to dgain where that is wanted
  std::fill_n(total, heads, 0.0f);
  const std::int64_t tokens = launch.dim(Backward::x, 0);
  sum_pieces(launch, tokens, heads, total + aligned_floats(heads), true, add_tokens);
  add_pieces(launch, tokens, heads, total + aligned_floats(heads), 0, heads, total);
  if (!launch.has(Backward::dgain)) return;
  for (std::int64_t head = 0; head < heads; ++head) launch.data<float>(Backward::dgain)[head] += total[head];
}

struct RunBackward : Backward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return aligned_floats(call.dim(x, 1)) * sizeof(float) + row_sums_bytes(call.dim(x, 0), call.dim(x, 1));
  }
  template <typename T>
  static void run(const Launch& launch) {
    dispatch_head(launch.dim(x, 2), Rotation(launch).half,
                  [&]<int kWidth, int kHalf>() { backward<T, kWidth, kHalf>(launch); });
  }
};

const Register registered[] = {sdk::cpu_kernel<RunForward>(), sdk::cpu_kernel<RunBackward>()};

}  // namespace
}  // namespace mulligan::cpu::qk_norm_rope
