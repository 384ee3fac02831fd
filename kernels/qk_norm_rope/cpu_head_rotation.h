// One head normed and rotated, forward and backward; x has `width` elements:
//   u = r x with r = 1 / sqrt(mean(x^2) + eps) (norm = 0: r = 1), rotated, times gain
// Rotation of the first 2 half elements, with the angles of the token's position:
//   (a, b) = (u[j], u[j + half]) -> (a cos + b sin, -a sin + b cos)
// Backward: w = the transposed rotation of dy, p = sum(w x):
//   dx (+)= gain r (w - x r^2 p / width)  (norm = 0: gain w),   dgain += r p
#pragma once

#include "kernels/qk_norm_rope/signature_rotary.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu {

constexpr std::int64_t kMaxHeadWidth = shapes::Rotary::max_head_width;  // a head's scratch lies on the stack

// The attributes and tables of a call.
struct Rotation {
  const float *cos, *sin, *gain;
  std::int64_t half, row_length;
  bool norm;
  float eps;

  explicit Rotation(const Launch& launch)
      : cos(launch.data<const float>(shapes::Rotary::cos)),
        sin(launch.data<const float>(shapes::Rotary::sin)),
        gain(launch.data<const float>(shapes::Rotary::gain)),
        half(static_cast<std::int64_t>(launch.attribute(shapes::Rotary::rope_dims)) / 2),
        row_length(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(launch.attribute(shapes::Rotary::row_length)))),
        norm(launch.flag(shapes::Rotary::norm)),
        eps(launch.number(shapes::Rotary::eps)) {}
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

// The heads of one dispatch_head(): extents that are constants where they can be, and scratch for two heads.
template <int kWidth, int kHalf>
struct HeadRotation {
  static constexpr std::int64_t kScratch = kWidth > 0 ? kWidth : kMaxHeadWidth;
  const Rotation& call;
  const std::int64_t width, half;
  alignas(64) float first[kScratch];
  alignas(64) float second[kScratch];

  HeadRotation(const Rotation& call, std::int64_t any_width)
      : call(call), width(kWidth > 0 ? kWidth : any_width), half(kHalf > 0 ? kHalf : call.half) {}

  template <typename T>
  [[gnu::always_inline]] void forward(const T* x, float gain, std::int64_t angles, T* y) {
    const float *cos = call.cos + angles, *sin = call.sin + angles;
    float* u = first;
    const std::int64_t count = kWidth > 0 ? kWidth : width, turned = kHalf > 0 ? kHalf : half;
    fill_row(u, count, [=](std::int64_t j) { return float(x[j]); });
    float factor = gain;
    if (call.norm)
      factor *= reciprocal_rms(lane_sum(count, [=](std::int64_t j) { return u[j] * u[j]; }), count, call.eps);
#pragma GCC ivdep
    for (std::int64_t j = 0; j < turned; ++j) {
      const float a = u[j], b = u[j + turned];
      u[j] = a * cos[j] + b * sin[j];
      u[j + turned] = b * cos[j] - a * sin[j];
    }
    fill_row(y, count, [=](std::int64_t j) { return factor * u[j]; });
  }

  // Returns what the head adds to dgain.
  template <typename T>
  [[gnu::always_inline]] float backward(const T* from, const T* dy, float gain, std::int64_t angles, T* dx,
                                        bool accumulate) {
    const float *cos = call.cos + angles, *sin = call.sin + angles;
    float *w = first, *x = second;
    const std::int64_t count = kWidth > 0 ? kWidth : width, turned = kHalf > 0 ? kHalf : half;
    fill_row(x, count, [=](std::int64_t j) { return float(from[j]); });
    fill_row(w, count, [=](std::int64_t j) { return float(dy[j]); });
#pragma GCC ivdep
    for (std::int64_t j = 0; j < turned; ++j) {
      const float a = w[j], b = w[j + turned];
      w[j] = a * cos[j] - b * sin[j];
      w[j + turned] = a * sin[j] + b * cos[j];
    }
    const float p = lane_sum(count, [=](std::int64_t j) { return w[j] * x[j]; });
    float r = 1.0f, along = 0.0f;
    if (call.norm) {
      r = reciprocal_rms(lane_sum(count, [=](std::int64_t j) { return x[j] * x[j]; }), count, call.eps);
      along = r * r * p / static_cast<float>(count);
    }
    const float factor = gain * r;
    write_row(dx, count, accumulate, [=](std::int64_t j) { return factor * (w[j] - along * x[j]); });
    return r * p;
  }
};

}  // namespace mulligan::cpu
