// What Muon does with an orthogonalised update; formulas in muon_kernels.h.
//
// Determinism: elements are independent.
#include <mulligan/cuda/fused_update.cuh>

MLG_CONST_FLOAT(lr_multiplier)
MLG_CONST_FLOAT(weight_decay)
MLG_CONST_FLOAT(scale)

MLG_KERNEL(muon_update, lr_multiplier, weight_decay, scale, MLG_UPDATE_CONSTANTS)
template <typename Direction, typename Master, typename Copy, int N>
__global__ void muon_update(global<const Direction> direction, global<Master> master,
                            global<const float> scalars, global<float> average, global<Copy> copy,
                            long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  const float rate = scalars[0] * lr_multiplier;
  const float decay = 1.0f - rate * scalars[2] * weight_decay, step_size = rate * scale;
  float values[N], p[N];
  load<N>(direction, i, values);
  load<N>(master, i, p);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) p[n] = p[n] * decay - step_size * values[n];
  store<N>(master, i, p);
  finish_update<Master, N, Copy>(p, average, copy, i);
}
