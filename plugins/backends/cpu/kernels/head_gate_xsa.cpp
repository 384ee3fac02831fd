// head_gate_xsa on o [T,H,h], v [T,K,h], gate [T,H]; head g belongs to kv head g / (H/K). With u = v / n,
// n = max(norm2(v), 1e-12), p = o.u and s = sigmoid(gate):
//   y = s (o - p u)      (v absent: y = s o; gate absent: s = 1)
// Backward, with q = s dy.u:
//   do = s dy - q u,   dv = sum over the kv head's heads of (2 p q u - q o - p s dy) / n,
//   dgate = s (1 - s) (dy.o - p dy.u)
// (Where norm2(v) < 1e-12, n is a constant, and the term 2 p q u is missing.)
//
// Determinism: tokens are independent; a dot product is summed in fixed lanes.
#include "plugins/backends/cpu/kernels/row_math.h"
#include "plugins/backends/cpu/vector_math.h"

namespace mulligan::cpu {
namespace {

constexpr std::int64_t kMaxHeadWidth = 1024;  // a head's scratch lies on the stack
constexpr float kSmallestNorm = 1e-12f;

enum { kO, kV, kGate, kY, kDy = 3, kDo, kDv, kDgate };

void check_inputs(Checker& check) {
  check.compute_dtype(kO);
  check.rank(kO, 3, 3);
  check.require(check.dim(kO, 2) <= kMaxHeadWidth, kO, "must have heads of at most 1024 elements");
  check.same_dtype(kV, kO);
  check.shape(kV, {check.dim(kO, 0), -1, check.dim(kO, 2)});
  check.require(check.dim(kV, 1) > 0 && check.dim(kO, 1) % check.dim(kV, 1) == 0, kV,
                "must have a number of heads that divides o's");
  check.same_dtype(kGate, kO);
  check.shape(kGate, {check.dim(kO, 0), check.dim(kO, 1)});
}

void check_forward(Checker& check) {
  check_inputs(check);
  check.like(kY, kO);
}

template <typename A, typename B>
float dot(const A* a, const B* b, std::int64_t count) {
  return lane_sum(count, [&](std::int64_t j) { return float(a[j]) * float(b[j]); });
}

template <typename T>
float norm_of(const T* v, std::int64_t width) {
  return std::max(std::sqrt(dot(v, v, width)), kSmallestNorm);
}

template <typename T>
void forward(const Launch& launch) {
  const std::int64_t heads = launch.dim(kO, 1), width = launch.dim(kO, 2);
  const std::int64_t kv_heads = launch.has(kV) ? launch.dim(kV, 1) : heads, group = heads / kv_heads;
  launch.parallel_for(launch.dim(kO, 0), row_grain(heads * width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t row = t * heads + head;
        const T* o = launch.data<const T>(kO) + row * width;
        T* y = launch.data<T>(kY) + row * width;
        const float s = launch.has(kGate) ? fast_sigmoid(float(launch.data<const T>(kGate)[row])) : 1.0f;
        if (!launch.has(kV)) {
          write_row(y, width, false, [&](std::int64_t j) { return s * float(o[j]); });
          continue;
        }
        const T* v = launch.data<const T>(kV) + (t * kv_heads + head / group) * width;
        const float n = norm_of(v, width);
        const float along = dot(o, v, width) / n / n;
        write_row(y, width, false, [&](std::int64_t j) { return s * (float(o[j]) - along * float(v[j])); });
      }
    }
  });
}

void run_forward(const Launch& launch) {
  dispatch_compute(launch.dtype(kO), [&]<typename T>() { forward<T>(launch); });
}

void check_backward(Checker& check) {
  check_inputs(check);
  check.like(kDy, kO);
  check.like(kDo, kO);
  check.require(check.has(kV), kDv, "must be absent where v is absent");
  check.like(kDv, kV);
  check.require(check.has(kGate), kDgate, "must be absent where gate is absent");
  check.like(kDgate, kGate);
}

template <typename T>
void backward(const Launch& launch) {
  const std::int64_t heads = launch.dim(kO, 1), width = launch.dim(kO, 2);
  const std::int64_t kv_heads = launch.has(kV) ? launch.dim(kV, 1) : heads, group = heads / kv_heads;
  const bool accumulate_do = launch.attribute(0) != 0, accumulate_dv = launch.attribute(1) != 0;
  const bool accumulate_dgate = launch.attribute(2) != 0;
  launch.parallel_for(launch.dim(kO, 0), row_grain(heads * width), [&](std::int64_t begin, std::int64_t end) {
    alignas(64) float dv[kMaxHeadWidth];
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
        const T* v = launch.has(kV) ? launch.data<const T>(kV) + (t * kv_heads + kv_head) * width : nullptr;
        const float n = v ? norm_of(v, width) : 1.0f;
        const float turns = n > kSmallestNorm ? 2.0f : 0.0f;
        for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
          const std::int64_t row = t * heads + head;
          const T* o = launch.data<const T>(kO) + row * width;
          const T* dy = launch.data<const T>(kDy) + row * width;
          const float s = launch.has(kGate) ? fast_sigmoid(float(launch.data<const T>(kGate)[row])) : 1.0f;
          const float p = v ? dot(o, v, width) / n : 0.0f, dy_u = v ? dot(dy, v, width) / n : 0.0f;
          if (launch.has(kDgate)) {
            write_row(launch.data<T>(kDgate) + row, 1, accumulate_dgate,
                      [&](std::int64_t) { return s * (1.0f - s) * (dot(dy, o, width) - p * dy_u); });
          }
          T* d_o = launch.data<T>(kDo) + row * width;
          if (!v) {
            write_row(d_o, width, accumulate_do, [&](std::int64_t j) { return s * float(dy[j]); });
            continue;
          }
          const float of_v = s * dy_u / n;
          write_row(d_o, width, accumulate_do,
                    [&](std::int64_t j) { return s * float(dy[j]) - of_v * float(v[j]); });
          if (!launch.has(kDv)) continue;
          const float of_dy = -p * s / n, of_self = turns * p * of_v / n;
          write_row(dv, width, head != kv_head * group, [&](std::int64_t j) {
            return of_self * float(v[j]) - of_v * float(o[j]) + of_dy * float(dy[j]);
          });
        }
        if (launch.has(kDv)) {
          write_row(launch.data<T>(kDv) + (t * kv_heads + kv_head) * width, width, accumulate_dv,
                    [&](std::int64_t j) { return dv[j]; });
        }
      }
    }
  });
}

void run_backward(const Launch& launch) {
  dispatch_compute(launch.dtype(kO), [&]<typename T>() { backward<T>(launch); });
}

MULLIGAN_CPU_KERNEL(head_gate_xsa_fwd, "in o, in? v, in? gate, out y", check_forward, run_forward)
MULLIGAN_CPU_KERNEL(head_gate_xsa_bwd,
                    "in o, in? v, in? gate, in dy, inout do, inout? dv, inout? dgate; "
                    "accumulate_do accumulate_dv accumulate_dgate",
                    check_backward, run_backward)

}  // namespace
}  // namespace mulligan::cpu
