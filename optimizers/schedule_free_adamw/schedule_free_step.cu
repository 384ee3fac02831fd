// Schedule-free AdamW, element by element; formulas in schedule_free_step.h.
//
// Determinism: elements are independent; the share is computed by one thread.
#include <mulligan/cuda/fused_update.cuh>

MLG_CONST_FLOAT(lr_multiplier)
MLG_CONST_FLOAT(weight_decay)
MLG_CONST_FLOAT(beta1)
MLG_CONST_FLOAT(beta2)
MLG_CONST_FLOAT(one_minus_beta2)
MLG_CONST_FLOAT(eps)
MLG_CONST_FLOAT(ratio)

// scalars: lr * sqrt(1 - beta2^t), factor of the weight decay
MLG_KERNEL(schedule_free_share)
__global__ void schedule_free_share(global<const float> scalars, global<float> weight_sum,
                                    global<float> share) {
  if (threadIdx.x > 0) return;
  const float square = scalars[0] * scalars[0], sum = weight_sum[0] + square;
  weight_sum[0] = sum;
  share[0] = sum > 0.0f ? square / sum : 1.0f;
}

MLG_KERNEL(schedule_free_update, lr_multiplier, weight_decay, beta1, beta2, one_minus_beta2, eps, scaled,
           MLG_UPDATE_CONSTANTS)
template <typename Master, typename Copy, int N>
__global__ void schedule_free_update(global<const float> gradient, global<Master> master,
                                     global<float> offset, global<float> exp_avg_sq,
                                     global<const float> share, global<const float> scalars,
                                     global<const float> gradient_scale, global<float> average,
                                     global<Copy> copy, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  const float scale = scale_of_gradients(gradient_scale);
  const float rate = scalars[0] * lr_multiplier, decay = scalars[1] * weight_decay, kept = 1.0f - share[0];
  float g[N], d[N], v[N], y[N];
  load<N>(gradient, i, g);
  load<N>(master, i, y);
  load<N>(offset, i, d);
  load<N>(exp_avg_sq, i, v);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    g[n] = g[n] * scale;
    v[n] = beta2 * v[n] + one_minus_beta2 * (g[n] * g[n]);
    const float change = rate * (g[n] / (sqrtf(v[n]) + eps) + decay * y[n]);
    const float before = d[n];
    d[n] = kept * (before - beta1 * change);
    y[n] = y[n] + (before - d[n]) - change;
  }
  store<N>(master, i, y);
  store<N>(offset, i, d);
  store<N>(exp_avg_sq, i, v);
  finish_update<Master, N, Copy>(y, average, copy, i);
}

MLG_KERNEL(schedule_free_average, ratio)
template <typename Master, int N>
__global__ void schedule_free_average(global<const Master> master, global<const float> offset,
                                      global<float> evaluation, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float y[N], d[N];
  load<N>(master, i, y);
  load<N>(offset, i, d);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) y[n] = y[n] - ratio * d[n];
  store<N>(evaluation, i, y);
}
