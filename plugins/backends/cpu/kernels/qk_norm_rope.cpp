// qk_norm_rope on x [T,G,h], per head:  u = r x with r = 1 / sqrt(mean(x^2) + eps) (norm = 0: r = 1),
// rotated, times gain. Rotation of the first rope_dims at position t mod row_length, with half = rope_dims /
// 2:
//   (a, b) = (u[j], u[j + half]) -> (a cos + b sin, -a sin + b cos)
// Backward: w = the transposed rotation of dy, p = sum(w x):
//   dx (+)= gain r (w - x r^2 p / h)  (norm = 0: gain w),   dgain[g] += sum over tokens of r p
//
// Determinism: heads are independent; dgain goes through partial sums over fixed pieces of tokens.
#include "plugins/backends/common/shapes/qk_norm_rope.h"
#include "plugins/backends/cpu/kernels/row_math.h"
#include "plugins/backends/cpu/kernels/row_sums.h"

namespace mulligan::cpu {
namespace {

struct Forward : shapes::QkNormRopeForward {
  static void run(const Launch& launch);
};
struct Backward : shapes::QkNormRopeBackward {
  static void check(sdk::CallChecks& call);
  static void run(const Launch& launch);
};

constexpr std::int64_t kMaxHeadWidth =
    shapes::QkNormRope::max_head_width;  // a head's scratch lies on the stack

struct Rotation {
  const float* cos;
  const float* sin;
  std::int64_t half, row_length;

  Rotation(const Launch& launch)
      : cos(launch.data<const float>(shapes::QkNormRope::cos)),
        sin(launch.data<const float>(shapes::QkNormRope::sin)),
        half(static_cast<std::int64_t>(launch.attribute(shapes::QkNormRope::rope_dims)) / 2),
        row_length(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(launch.attribute(shapes::QkNormRope::row_length)))) {}
  // Offset of token t's row in the tables.
  std::int64_t offset(std::int64_t t) const { return t % row_length * half; }
};

// Calls body.operator()<width, half>() with the extents as constants for the usual heads, which then live in
// registers; 0 stands for "any".
template <typename Body>
void dispatch_head(std::int64_t width, std::int64_t half, Body&& body) {
  if (width == 64 && half == 8) return body.template operator()<64, 8>();
  if (width == 64 && half == 32) return body.template operator()<64, 32>();
  if (width == 128 && half == 64) return body.template operator()<128, 64>();
  return body.template operator()<0, 0>();
}

template <typename T, int kWidth, int kHalf>
void forward(const Launch& launch) {
  const Rotation rotation(launch);
  const std::int64_t heads = launch.dim(Forward::x, 1),
                     width = kWidth > 0 ? kWidth : launch.dim(Forward::x, 2);
  const std::int64_t half = kHalf > 0 ? kHalf : rotation.half;
  const T* all_x = launch.data<const T>(Forward::x);
  T* all_y = launch.data<T>(Forward::y);
  const float* gain = launch.data<const float>(Forward::gain);
  const bool norm = launch.attribute(Forward::norm) != 0;
  const auto eps = static_cast<float>(launch.attribute(Forward::eps));
  launch.parallel_for(
      launch.dim(Forward::x, 0), row_grain(heads * width), [=](std::int64_t begin, std::int64_t end) {
        alignas(64) float scratch[kWidth > 0 ? kWidth : kMaxHeadWidth];
        float* u = scratch;
        for (std::int64_t t = begin; t < end; ++t) {
          const float* cos = rotation.cos + rotation.offset(t);
          const float* sin = rotation.sin + rotation.offset(t);
          for (std::int64_t head = 0; head < heads; ++head) {
            const T* x = all_x + (t * heads + head) * width;
            fill_row(u, width, [=](std::int64_t j) { return float(x[j]); });
            float factor = gain ? gain[head] : 1.0f;
            if (norm)
              factor *=
                  reciprocal_rms(lane_sum(width, [=](std::int64_t j) { return u[j] * u[j]; }), width, eps);
#pragma GCC ivdep
            for (std::int64_t j = 0; j < half; ++j) {
              const float a = u[j], b = u[j + half];
              u[j] = a * cos[j] + b * sin[j];
              u[j + half] = b * cos[j] - a * sin[j];
            }
            fill_row(all_y + (t * heads + head) * width, width,
                     [=](std::int64_t j) { return factor * u[j]; });
          }
        }
      });
}

void Forward::run(const Launch& launch) {
  dispatch_compute(launch.dtype(Forward::x), [&]<typename T>() {
    dispatch_head(launch.dim(Forward::x, 2), Rotation(launch).half,
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
  const std::int64_t heads = launch.dim(Backward::x, 1),
                     width = kWidth > 0 ? kWidth : launch.dim(Backward::x, 2);
  const std::int64_t half = kHalf > 0 ? kHalf : rotation.half;
  const T* all_x = launch.data<const T>(Backward::x);
  const T* all_dy = launch.data<const T>(Backward::dy);
  T* all_dx = launch.data<T>(Backward::dx);
  const float* gain = launch.data<const float>(Backward::gain);
  const bool norm = launch.attribute(Backward::norm) != 0,
             accumulate = launch.attribute(Backward::accumulate_dx) != 0;
  const auto eps = static_cast<float>(launch.attribute(Backward::eps));
  const auto add_tokens = [=](float* partial, std::int64_t begin, std::int64_t end) {
    alignas(64) float scratch[2][kWidth > 0 ? kWidth : kMaxHeadWidth];
    float *w = scratch[0], *x = scratch[1];
    for (std::int64_t t = begin; t < end; ++t) {
      const float* cos = rotation.cos + rotation.offset(t);
      const float* sin = rotation.sin + rotation.offset(t);
      for (std::int64_t head = 0; head < heads; ++head) {
        const T* dy = all_dy + (t * heads + head) * width;
        fill_row(x, width,
                 [from = all_x + (t * heads + head) * width](std::int64_t j) { return float(from[j]); });
        fill_row(w, width, [=](std::int64_t j) { return float(dy[j]); });
#pragma GCC ivdep
        for (std::int64_t j = 0; j < half; ++j) {
          const float a = w[j], b = w[j + half];
          w[j] = a * cos[j] - b * sin[j];
          w[j + half] = a * sin[j] + b * cos[j];
        }
        const float p = lane_sum(width, [=](std::int64_t j) { return w[j] * x[j]; });
        float r = 1.0f, along = 0.0f;
        if (norm) {
          const float squares = lane_sum(width, [=](std::int64_t j) { return x[j] * x[j]; });
          r = reciprocal_rms(squares, width, eps);
          along = r * r * p / static_cast<float>(width);
        }
        partial[head] += r * p;
        const float factor = gain ? gain[head] * r : r;
        write_row(all_dx + (t * heads + head) * width, width, accumulate,
                  [=](std::int64_t j) { return factor * (w[j] - along * x[j]); });
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
  dispatch_compute(launch.dtype(Backward::x), [&]<typename T>() {
    dispatch_head(launch.dim(Backward::x, 2), Rotation(launch).half,
                  [&]<int kWidth, int kHalf>() { backward<T, kWidth, kHalf>(launch); });
  });
}

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu
