// qk_norm_rope on x [T,G,h]: each head as in head_rotation.h, gain and dgain [G].
//
// Determinism: heads are independent; dgain goes through partial sums over fixed pieces of tokens.
#include "kernels/qk_norm_rope/cpu_head_rotation.h"
#include "kernels/qk_norm_rope/signature.h"
#include "plugins/backends/cpu/math/row_sums.h"

namespace mulligan::cpu::qk_norm_rope {
namespace {

struct Forward : shapes::QkNormRopeForward {
  static void run(const Launch& launch);
};
struct Backward : shapes::QkNormRopeBackward {
  static void check(sdk::CallChecks& call);
  static void run(const Launch& launch);
};

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

void Forward::run(const Launch& launch) {
  dispatch_compute(launch.dtype(x), [&]<typename T>() {
    dispatch_head(launch.dim(x, 2), Rotation(launch).half,
                  [&]<int kWidth, int kHalf>() { forward<T, kWidth, kHalf>(launch); });
  });
}

void Backward::check(sdk::CallChecks& call) {
  QkNormRopeBackward::check(call);
  call.workspace(aligned_floats(call.dim(x, 1)) * sizeof(float) +
                 row_sums_bytes(call.dim(x, 0), call.dim(x, 1)));
}

template <typename T, int kWidth, int kHalf>
void backward(const Launch& launch) {
  const Rotation rotation(launch);
  const std::int64_t heads = launch.dim(Backward::x, 1), width = launch.dim(Backward::x, 2);
  const T* x = launch.data<const T>(Backward::x);
  const T* dy = launch.data<const T>(Backward::dy);
  T* dx = launch.data<T>(Backward::dx);
  const bool accumulate = launch.attribute(Backward::accumulate_dx) != 0;
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
  add_row_sums(launch, launch.dim(Backward::x, 0), heads, total + aligned_floats(heads), total, add_tokens);
  if (!launch.has(Backward::dgain)) return;
  for (std::int64_t head = 0; head < heads; ++head) launch.data<float>(Backward::dgain)[head] += total[head];
}

void Backward::run(const Launch& launch) {
  dispatch_compute(launch.dtype(x), [&]<typename T>() {
    dispatch_head(launch.dim(x, 2), Rotation(launch).half,
                  [&]<int kWidth, int kHalf>() { backward<T, kWidth, kHalf>(launch); });
  });
}

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::qk_norm_rope
