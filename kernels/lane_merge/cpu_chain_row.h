// What both passes of lane_chain and lane_mean_norm compute of a row (formulas: lane_chain.cpp).
#pragma once

#include "kernels/lane_merge/signature_chain.h"
#include "plugins/backends/cpu/math/merge_columns.h"

namespace mulligan::cpu {

// The parameters of a call.
struct LaneParameters {
  const float *attn_scale, *mlp_scale, *rho, *post;
  const float *weight = nullptr, *gate = nullptr, *mix = nullptr;  // null where absent

  template <typename Shape>
  static LaneParameters of(const Launch& launch, Shape) {
    LaneParameters p{launch.data<const float>(Shape::attn_scale), launch.data<const float>(Shape::mlp_scale),
                     launch.data<const float>(Shape::rho), launch.data<const float>(Shape::post)};
    if constexpr (Shape::mixes) {
      p.weight = launch.data<const float>(Shape::weight);
      p.gate = launch.data<const float>(Shape::gate);
      p.mix = launch.data<const float>(Shape::mix);
    }
    return p;
  }
};

// A row of the inputs and what the forward pass makes of it.
template <typename T>
struct LaneRow {
  const T *lane0, *lane1, *a, *m;
  const T *skip = nullptr, *x0 = nullptr;  // null where absent
  float *out0, *out1, *merged, *y0;

  // Of `room`, for the results.
  static std::int64_t floats(std::int64_t width) { return 4 * aligned_floats(width); }

  template <typename Shape>
  LaneRow(const Launch& launch, Shape, std::int64_t row, std::int64_t width, float* room)
      : out0(room),
        out1(room + aligned_floats(width)),
        merged(room + 2 * aligned_floats(width)),
        y0(room + 3 * aligned_floats(width)) {
    const auto input = [&](std::uint32_t argument) { return row_of<const T>(launch, argument, row, width); };
    lane0 = input(Shape::lane0), lane1 = input(Shape::lane1), a = input(Shape::a), m = input(Shape::m);
    if constexpr (Shape::mixes) skip = input(Shape::skip), x0 = input(Shape::x0);
  }

  void compute(const LaneParameters& p, const MergeColumns& columns, std::int64_t width) {
    const T *lane0 = this->lane0, *lane1 = this->lane1, *a = this->a, *m = this->m, *skip = this->skip,
            *x0 = this->x0;
    const float *attn_scale = p.attn_scale, *mlp_scale = p.mlp_scale, *mix = p.mix;
    const float rho0 = p.rho[0], rho1 = p.rho[1];
    const float post00 = p.post[0], post01 = p.post[1], post10 = p.post[2], post11 = p.post[3];
    fill_row(out0, width, [=](std::int64_t j) {
      return rho0 * float(lane0[j]) + post00 * (attn_scale[j] * float(a[j])) +
             post10 * (mlp_scale[j] * float(m[j]));
    });
    fill_row(out1, width, [=](std::int64_t j) {
      return rho1 * float(lane1[j]) + post01 * (attn_scale[j] * float(a[j])) +
             post11 * (mlp_scale[j] * float(m[j]));
    });
    const float *out0 = this->out0, *out1 = this->out1;
    const float *of_sum = columns.of_sum, *of_skip = columns.of_skip;
    if (of_sum && skip) {
      fill_row(merged, width,
               [=](std::int64_t j) { return of_sum[j] * out0[j] + of_skip[j] * float(skip[j]); });
    } else if (of_sum) {
      fill_row(merged, width, [=](std::int64_t j) { return of_sum[j] * out0[j]; });
    } else {
      merged = this->out0;
    }
    const float* merged = this->merged;
    if (mix) {
      fill_row(y0, width, [=](std::int64_t j) { return mix[j] * merged[j] + mix[width + j] * float(x0[j]); });
    } else {
      fill_row(y0, width, [=](std::int64_t j) { return 0.5f * merged[j] + 0.5f * out1[j]; });
    }
  }
};

}  // namespace mulligan::cpu
