// head_gate_xsa on o [T,H,h], v [T,K,h], gate [T,H]; head g belongs to kv head g / (H/K). With u = v / n,
// n = max(norm2(v), 1e-12), p = o.u and s = sigmoid(k gate), k = gate_scale:
//   y = s (o - p u)      (v absent: y = s o; gate absent: s = 1)
// Backward, with q = s dy.u:
//   do (+)= s dy - q u,   dv (+)= sum over the kv head's heads of (2 p q u - q o - p s dy) / n,
//   dgate (+)= k s (1 - s) (dy.o - p dy.u),   1 - s as sigmoid(-k gate): an open gate leaves no digits of 1 - s
// (Where norm2(v) < 1e-12, n is a constant, and the term 2 p q u is missing.)
//
// Determinism: tokens are independent; a dot product is summed in fixed lanes.
#include <mulligan/vector_math.hpp>

#include "kernels/head_gate_xsa/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::head_gate_xsa {
namespace {

using Forward = shapes::HeadGateXsaForward;
using Backward = shapes::HeadGateXsaBackward;

constexpr std::int64_t kMaxHeadWidth =
    shapes::HeadGateXsa::max_head_width;  // a head's scratch lies on the stack
constexpr float kSmallestNorm = 1e-12f;

template <typename A, typename B>
[[gnu::always_inline]] inline float dot(const A* a, const B* b, std::int64_t count) {
  return lane_sum(count, [=](std::int64_t j) { return float(a[j]) * float(b[j]); });
}

// The arguments of one call, and how its heads are grouped.
template <typename T>
struct Heads {
  const T *o, *v, *gate;
  std::int64_t tokens, count, width, kv_count, group;
  float gate_scale;

  explicit Heads(const Launch& launch)
      : o(launch.data<const T>(shapes::HeadGateXsa::o)),
        v(launch.data<const T>(shapes::HeadGateXsa::v)),
        gate(launch.data<const T>(shapes::HeadGateXsa::gate)),
        tokens(launch.dim(shapes::HeadGateXsa::o, 0)),
        count(launch.dim(shapes::HeadGateXsa::o, 1)),
        width(launch.dim(shapes::HeadGateXsa::o, 2)),
        kv_count(v ? launch.dim(shapes::HeadGateXsa::v, 1) : count),
        group(count / kv_count),
        gate_scale(launch.number(Forward::gate_scale)) {
    static_assert(static_cast<int>(Forward::gate_scale) == static_cast<int>(Backward::gate_scale));
  }
  float openness(std::int64_t row) const {
    return gate ? sdk::fast_sigmoid(gate_scale * float(gate[row])) : 1.0f;
  }
  float rest(std::int64_t row) const {  // 1 - openness
    return gate ? sdk::fast_sigmoid(-gate_scale * float(gate[row])) : 0.0f;
  }
};

// v of one kv head as floats, in `scratch`, and its norm.
template <typename T>
[[gnu::always_inline]] inline float load_value(const T* v, std::int64_t width, float* scratch) {
  fill_row(scratch, width, [=](std::int64_t j) { return float(v[j]); });
  return std::max(std::sqrt(dot(scratch, scratch, width)), kSmallestNorm);
}

// kWidth: the head width as a constant (the head then lives in registers); 0: any.
template <typename T, int kWidth>
void forward(const Launch& launch) {
  const Heads<T> heads(launch);
  const std::int64_t width = kWidth > 0 ? kWidth : heads.width;
  T* all_y = launch.data<T>(Forward::y);
  const auto work = [=](std::int64_t begin, std::int64_t end) {
    alignas(64) float scratch[kWidth > 0 ? kWidth : kMaxHeadWidth];
    float* v = scratch;
    for (std::int64_t kv_row = begin * heads.kv_count; kv_row < end * heads.kv_count; ++kv_row) {
      const float inverse = heads.v ? 1.0f / load_value(heads.v + kv_row * width, width, v) : 0.0f;
      for (std::int64_t row = kv_row * heads.group; row < (kv_row + 1) * heads.group; ++row) {
        const T* o = heads.o + row * width;
        T* y = all_y + row * width;
        const float s = heads.openness(row);
        if (!heads.v) {
          fill_row(y, width, [=](std::int64_t j) { return s * float(o[j]); });
          continue;
        }
        const float along = dot(o, v, width) * inverse * inverse;
        fill_row(y, width, [=](std::int64_t j) { return s * (float(o[j]) - along * v[j]); });
      }
    }
  };
  launch.parallel_for(heads.tokens, row_grain(heads.count * width), work);
}

struct RunForward : Forward {
  template <typename T>
  static void run(const Launch& launch) {
    if (launch.dim(Forward::o, 2) == 64) return forward<T, 64>(launch);
    forward<T, 0>(launch);
  }
};

template <typename T, int kWidth>
void backward(const Launch& launch) {
  const Heads<T> heads(launch);
  const std::int64_t width = kWidth > 0 ? kWidth : heads.width;
  const T* all_dy = launch.data<const T>(Backward::dy);
  T *all_do = launch.data<T>(Backward::d_o), *all_dv = launch.data<T>(Backward::dv),
    *dgate = launch.data<T>(Backward::dgate);
  const bool accumulate_do = launch.flag(Backward::accumulate_do),
             accumulate_dv = launch.flag(Backward::accumulate_dv);
  const bool accumulate_dgate = launch.flag(Backward::accumulate_dgate);
  const auto work = [=](std::int64_t begin, std::int64_t end) {
    alignas(64) float scratch[4][kWidth > 0 ? kWidth : kMaxHeadWidth];
    float *v = scratch[0], *dv = scratch[1], *o = scratch[2], *dy = scratch[3];
    for (std::int64_t kv_row = begin * heads.kv_count; kv_row < end * heads.kv_count; ++kv_row) {
      const float n = heads.v ? load_value(heads.v + kv_row * width, width, v) : 1.0f, inverse = 1.0f / n;
      const float turns = n > kSmallestNorm ? 2.0f : 0.0f;
      fill_row(dv, width, [](std::int64_t) { return 0.0f; });
      for (std::int64_t row = kv_row * heads.group; row < (kv_row + 1) * heads.group; ++row) {
        fill_row(o, width, [from = heads.o + row * width](std::int64_t j) { return float(from[j]); });
        fill_row(dy, width, [from = all_dy + row * width](std::int64_t j) { return float(from[j]); });
        const float s = heads.openness(row);
        const float p = heads.v ? dot(o, v, width) * inverse : 0.0f;
        const float dy_u = heads.v ? dot(dy, v, width) * inverse : 0.0f;
        if (dgate) {
          const float slope = heads.gate_scale * s * heads.rest(row) * (dot(dy, o, width) - p * dy_u);
          dgate[row] = T(accumulate_dgate ? float(dgate[row]) + slope : slope);
        }
        T* d_o = all_do + row * width;
        if (!heads.v) {
          write_row(d_o, width, accumulate_do, [=](std::int64_t j) { return s * dy[j]; });
          continue;
        }
        const float of_v = s * dy_u * inverse;
        write_row(d_o, width, accumulate_do, [=](std::int64_t j) { return s * dy[j] - of_v * v[j]; });
        if (!all_dv) continue;
        const float of_dy = -p * s * inverse, of_self = turns * p * of_v * inverse;
        fill_row(dv, width,
                 [=](std::int64_t j) { return dv[j] + (of_self * v[j] - of_v * o[j] + of_dy * dy[j]); });
      }
      if (all_dv) {
        write_row(all_dv + kv_row * width, width, accumulate_dv, [=](std::int64_t j) { return dv[j]; });
      }
    }
  };
  launch.parallel_for(heads.tokens, row_grain(heads.count * width), work);
}

struct RunBackward : Backward {
  template <typename T>
  static void run(const Launch& launch) {
    if (launch.dim(Backward::o, 2) == 64) return backward<T, 64>(launch);
    backward<T, 0>(launch);
  }
};

const Register registered[] = {sdk::cpu_kernel<RunForward>(), sdk::cpu_kernel<RunBackward>()};

}  // namespace
}  // namespace mulligan::cpu::head_gate_xsa
