// qk_norm_rope on x [T,G,h], per head:  u = r x with r = 1 / sqrt(mean(x^2) + eps) (norm = 0: r = 1),
// rotated, times gain. Rotation of the first rope_dims at position t mod row_length, with half = rope_dims /
// 2:
//   (a, b) = (u[j], u[j + half]) -> (a cos + b sin, -a sin + b cos)
// Backward: w = the transposed rotation of dy, p = sum(w x):
//   dx = gain r (w - x r^2 p / h)  (norm = 0: gain w),   dgain[g] += sum over tokens of r p
//
// Determinism: heads are independent; dgain goes through partial sums over fixed pieces of tokens.
#include "plugins/backends/cpu/kernels/row_math.h"

namespace mulligan::cpu {
namespace {

constexpr std::int64_t kMaxHeadWidth = 1024;  // a head's scratch lies on the stack

enum Attribute { kRopeDims, kRowLength, kNorm, kEps };

struct Rotation {
  const float* cos;
  const float* sin;
  std::int64_t half, row_length;

  Rotation(const Launch& launch)
      : cos(launch.data<const float>(1)),
        sin(launch.data<const float>(2)),
        half(static_cast<std::int64_t>(launch.attribute(kRopeDims)) / 2),
        row_length(std::max<std::int64_t>(1, static_cast<std::int64_t>(launch.attribute(kRowLength)))) {}
  // Offset of token t's row in the tables.
  std::int64_t offset(std::int64_t t) const { return t % row_length * half; }
};

void check_common(Checker& check) {
  check.compute_dtype(0);
  check.rank(0, 3, 3);
  const std::int64_t heads = check.dim(0, 1), head_width = check.dim(0, 2);
  check.require(head_width <= kMaxHeadWidth, 0, "must have heads of at most 1024 elements");
  check.dtype(1, {MLG_F32});
  check.like(2, 1);
  check.attribute_range(kRopeDims, 0, static_cast<double>(head_width));
  check.attribute_range(kEps, 0.0, 1.0);
  const auto rope_dims = static_cast<std::int64_t>(check.attribute(kRopeDims));
  if (rope_dims > 0) {
    check.require(rope_dims % 2 == 0, 0, "needs an even attribute rope_dims");
    check.shape(1, {-1, rope_dims / 2});
    check.attribute_range(kRowLength, 1, static_cast<double>(check.dim(1, 0)));
  }
  check.dtype(3, {MLG_F32});
  check.shape(3, {heads});
}

void check_forward(Checker& check) {
  check_common(check);
  check.like(4, 0);
}

template <typename T>
void forward(const Launch& launch) {
  const std::int64_t heads = launch.dim(0, 1), width = launch.dim(0, 2);
  const float* gain = launch.data<const float>(3);
  const bool norm = launch.attribute(kNorm) != 0;
  const auto eps = static_cast<float>(launch.attribute(kEps));
  const Rotation rotation(launch);
  launch.parallel_for(launch.dim(0, 0), row_grain(heads * width), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t half = rotation.half;
    for (std::int64_t t = begin; t < end; ++t) {
      const float* cos = rotation.cos + rotation.offset(t);
      const float* sin = rotation.sin + rotation.offset(t);
      for (std::int64_t head = 0; head < heads; ++head) {
        const T* x = launch.data<const T>(0) + (t * heads + head) * width;
        T* y = launch.data<T>(4) + (t * heads + head) * width;
        float factor = gain ? gain[head] : 1.0f;
        if (norm) {
          const float squares = lane_sum(width, [&](std::int64_t j) { return float(x[j]) * float(x[j]); });
          factor *= reciprocal_rms(squares, width, eps);
        }
        write_row(y, half, false, [&](std::int64_t j) {
          return factor * (float(x[j]) * cos[j] + float(x[j + half]) * sin[j]);
        });
        write_row(y + half, half, false, [&](std::int64_t j) {
          return factor * (float(x[j + half]) * cos[j] - float(x[j]) * sin[j]);
        });
        write_row(y + 2 * half, width - 2 * half, false,
                  [&](std::int64_t j) { return factor * float(x[2 * half + j]); });
      }
    }
  });
}

void run_forward(const Launch& launch) {
  dispatch_compute(launch.dtype(0), [&]<typename T>() { forward<T>(launch); });
}

enum { kDy = 4, kDx, kDgain };

void check_backward(Checker& check) {
  check_common(check);
  check.like(kDy, 0);
  check.like(kDx, 0);
  check.dtype(kDgain, {MLG_F32});
  check.shape(kDgain, {check.dim(0, 1)});
  check.workspace(aligned_floats(check.dim(0, 1)) * sizeof(float) +
                  row_sums_bytes(check.dim(0, 0), check.dim(0, 1)));
}

template <typename T>
void backward(const Launch& launch) {
  const std::int64_t heads = launch.dim(0, 1), width = launch.dim(0, 2);
  const float* gain = launch.data<const float>(3);
  const bool norm = launch.attribute(kNorm) != 0, accumulate = launch.attribute(4) != 0;
  const auto eps = static_cast<float>(launch.attribute(kEps));
  const Rotation rotation(launch);
  const std::int64_t half = rotation.half;
  const auto add_tokens = [&](float* partial, std::int64_t begin, std::int64_t end) {
    alignas(64) float w[kMaxHeadWidth];
    for (std::int64_t t = begin; t < end; ++t) {
      const float* cos = rotation.cos + rotation.offset(t);
      const float* sin = rotation.sin + rotation.offset(t);
      for (std::int64_t head = 0; head < heads; ++head) {
        const T* x = launch.data<const T>(0) + (t * heads + head) * width;
        const T* dy = launch.data<const T>(kDy) + (t * heads + head) * width;
        write_row(w, half, false,
                  [&](std::int64_t j) { return float(dy[j]) * cos[j] - float(dy[j + half]) * sin[j]; });
        write_row(w + half, half, false,
                  [&](std::int64_t j) { return float(dy[j]) * sin[j] + float(dy[j + half]) * cos[j]; });
        write_row(w + 2 * half, width - 2 * half, false,
                  [&](std::int64_t j) { return float(dy[2 * half + j]); });
        const float p = lane_sum(width, [&](std::int64_t j) { return w[j] * float(x[j]); });
        float r = 1.0f, along = 0.0f;
        if (norm) {
          const float squares = lane_sum(width, [&](std::int64_t j) { return float(x[j]) * float(x[j]); });
          r = reciprocal_rms(squares, width, eps);
          along = r * r * p / static_cast<float>(width);
        }
        partial[head] += r * p;
        const float factor = gain ? gain[head] * r : r;
        write_row(launch.data<T>(kDx) + (t * heads + head) * width, width, accumulate,
                  [&](std::int64_t j) { return factor * (w[j] - along * float(x[j])); });
      }
    }
  };
  float* total = launch.workspace<float>();  // [G]; added to dgain where that is wanted
  std::fill_n(total, heads, 0.0f);
  add_row_sums(launch, launch.dim(0, 0), heads, total + aligned_floats(heads), total, add_tokens);
  if (!launch.has(kDgain)) return;
  for (std::int64_t head = 0; head < heads; ++head) launch.data<float>(kDgain)[head] += total[head];
}

void run_backward(const Launch& launch) {
  dispatch_compute(launch.dtype(0), [&]<typename T>() { backward<T>(launch); });
}

MULLIGAN_CPU_KERNEL(qk_norm_rope_fwd, "in x, in cos, in sin, in? gain, out y; rope_dims row_length norm eps",
                    check_forward, run_forward)
MULLIGAN_CPU_KERNEL(qk_norm_rope_bwd,
                    "in x, in cos, in sin, in? gain, in dy, inout dx, inout? dgain; "
                    "rope_dims row_length norm eps accumulate_dx",
                    check_backward, run_backward)

}  // namespace
}  // namespace mulligan::cpu
