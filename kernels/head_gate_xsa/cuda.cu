// head_gate_xsa on o [T, H, h], v [T, K, h], gate [T, H]; head g belongs to kv head g / (H/K). With u = v /
// n, n = max(norm2(v), 1e-12), p = o.u and s = sigmoid(k gate), k = gate_scale:
//   y = s (o - p u)      (v absent: y = s o; gate absent: s = 1)
// Backward, with q = s dy.u:
//   do (+)= s dy - q u,   dv (+)= sum over the kv head's heads of (2 p q u - q o - p s dy) / n,
//   dgate (+)= k s (1 - s) (dy.o - p dy.u),   1 - s as sigmoid(-k gate): an open gate leaves no digits of 1 - s
// (Where norm2(v) < 1e-12, n is a constant, and the term 2 p q u is missing.)
//
// A few lanes per head; backward per kv head. Determinism: tokens are independent; sums have a fixed order.
#include <mulligan/cuda/heads.cuh>

MLG_CONST_INT(members)  // heads of a kv head
MLG_CONST_FLOAT(gate_scale)
MLG_CONST_INT(accumulate_do)
MLG_CONST_INT(accumulate_dv)
MLG_CONST_INT(accumulate_dgate)

constexpr float kSmallestNorm = 1e-12f;

// v and gate may be null. rows = T H.
MLG_KERNEL(head_gate_xsa_fwd, members, gate_scale, MLG_HEAD_CONSTANTS)
template <typename T, int N>
__global__ void head_gate_xsa_fwd(global<const T> o, global<const T> v, global<const T> gate, global<T> y,
                                  long long rows) {
  const long long row = head_group(), at = row * head_width;
  const bool active = row < rows;
  HeadValues<N> values, value;
  load_head<N>(o, at, active, values);
  float along = 0;
  if (v) {
    load_head<N>(v, row / members * head_width, active, value);
    const float squares = head_sum<N>([&](int i, int n) { return value.v[i][n] * value.v[i][n]; });
    const float product = head_sum<N>([&](int i, int n) { return value.v[i][n] * values.v[i][n]; });
    const float inverse = 1.0f / fmaxf(sqrtf(squares), kSmallestNorm);
    along = product * inverse * inverse;
  }
  if (!active) return;
  const float s = gate ? sigmoid(gate_scale * to_float(gate[row])) : 1.0f;
  for_head<N>([&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n)
      values.v[i][n] = s * (v ? values.v[i][n] - along * value.v[i][n] : values.v[i][n]);
  });
  store_head<N>(y, at, values, false);
}

// v, gate, dv, dgate may be null. kv_rows = T K.
MLG_KERNEL(head_gate_xsa_bwd, members, gate_scale, accumulate_do, accumulate_dv, accumulate_dgate,
           MLG_HEAD_CONSTANTS)
template <typename T, int N>
__global__ void head_gate_xsa_bwd(global<const T> o, global<const T> v, global<const T> gate,
                                  global<const T> dy, global<T> d_o, global<T> dv, global<T> dgate,
                                  long long kv_rows) {
  const long long kv_row = head_group();
  const bool active = kv_row < kv_rows;
  HeadValues<N> value, gradient;
  float norm = 1;
  if (v) {
    load_head<N>(v, kv_row * head_width, active, value);
    norm =
        fmaxf(sqrtf(head_sum<N>([&](int i, int n) { return value.v[i][n] * value.v[i][n]; })), kSmallestNorm);
  }
  const float inverse = 1.0f / norm, turns = norm > kSmallestNorm ? 2.0f : 0.0f;
  for_head<N>([&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) gradient.v[i][n] = 0;
  });
  for (int member = 0; member < members; ++member) {
    const long long row = kv_row * members + member, at = row * head_width;
    HeadValues<N> a, g;
    load_head<N>(o, at, active, a);
    load_head<N>(dy, at, active, g);
    float p = 0, dy_u = 0;
    if (v) {
      p = inverse * head_sum<N>([&](int i, int n) { return a.v[i][n] * value.v[i][n]; });
      dy_u = inverse * head_sum<N>([&](int i, int n) { return g.v[i][n] * value.v[i][n]; });
    }
    float dy_o = 0;
    if (dgate) dy_o = head_sum<N>([&](int i, int n) { return g.v[i][n] * a.v[i][n]; });
    if (!active) continue;
    const float s = gate ? sigmoid(gate_scale * to_float(gate[row])) : 1.0f;
    if (dgate && head_lane() == 0) {
      const float rest = gate ? sigmoid(-gate_scale * to_float(gate[row])) : 0.0f;
      const float slope[1] = {gate_scale * s * rest * (dy_o - p * dy_u)};
      store<1>(dgate, row, slope, accumulate_dgate);
    }
    const float of_v = s * dy_u * inverse, of_dy = -p * s * inverse, of_self = turns * p * of_v * inverse;
    for_head<N>([&](int i, int column) {
      float d[N];
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        d[n] = s * g.v[i][n];
        if (!v) continue;
        d[n] -= of_v * value.v[i][n];
        gradient.v[i][n] += of_self * value.v[i][n] - of_v * a.v[i][n] + of_dy * g.v[i][n];
      }
      store<N>(d_o, at + column, d, accumulate_do);
    });
  }
  if (active && dv) store_head<N>(dv, kv_row * head_width, gradient, accumulate_dv);
}
