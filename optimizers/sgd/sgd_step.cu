// The update of one tensor by gradient descent with momentum, element by element; formula in sgd_step.h.
//
// Determinism: elements are independent.
#include <mulligan/cuda/fused_update.cuh>

MLG_CONST_FLOAT(lr_multiplier)
MLG_CONST_FLOAT(weight_decay)
MLG_CONST_INT(decoupled)
MLG_CONST_INT(nesterov)

// momentum_buffer may be null. scalars: lr, momentum, factor of the weight decay
MLG_KERNEL(sgd_update, lr_multiplier, weight_decay, decoupled, nesterov, scaled, MLG_UPDATE_CONSTANTS)
template <typename Master, typename Copy, int N>
__global__ void sgd_update(global<const float> gradient, global<Master> master, global<float> momentum_buffer,
                           global<const float> scalars, global<const float> gradient_scale,
                           global<float> average, global<Copy> copy, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  const float scale = scale_of_gradients(gradient_scale);
  const float rate = scalars[0] * lr_multiplier;
  const float momentum = scalars[1], decay_factor = scalars[2];
  const float decay = decoupled ? 1.0f - rate * decay_factor * weight_decay : 1.0f;
  const float coupled_decay = decoupled ? 0.0f : decay_factor * weight_decay;
  float direction[N], p[N];
  load<N>(gradient, i, direction);
  load<N>(master, i, p);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) direction[n] = direction[n] * scale + coupled_decay * p[n];
  if (momentum_buffer) {
    float buffered[N];
    load<N>(momentum_buffer, i, buffered);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) {
      buffered[n] = momentum * buffered[n] + direction[n];
      direction[n] = nesterov ? direction[n] + momentum * buffered[n] : buffered[n];
    }
    store<N>(momentum_buffer, i, buffered);
  }
  MLG_UNROLL
  for (int n = 0; n < N; ++n) p[n] = p[n] * decay - rate * direction[n];
  store<N>(master, i, p);
  finish_update<Master, N, Copy>(p, average, copy, i);
}
