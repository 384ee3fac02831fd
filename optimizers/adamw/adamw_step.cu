// The AdamW update of one tensor, element by element; formula in adamw_step.h. One pass: gradient, master and
// both moments are read once, the last three written.
//
// Determinism: elements are independent.
#include <mulligan/cuda/fused_update.cuh>
#include <mulligan/cuda/philox.cuh>

MLG_CONST_FLOAT(lr_multiplier)
MLG_CONST_FLOAT(weight_decay)
MLG_CONST_FLOAT(beta2)
MLG_CONST_FLOAT(one_minus_beta2)
MLG_CONST_FLOAT(eps)

// Moments as they are: storing rounds them to the nearest.
struct NearestMoments {
  __device__ void operator()(long long, float&, float&) const {}
};
// Stochastically, as AdamwStochasticUpdate of adamw_step.h.
struct StochasticMoments {
  uint32_t stream_low, stream_high, purpose_low, purpose_high;
  unsigned long long first_number;
  __device__ void operator()(long long i, float& first, float& second) const {
    const PhiloxBlock block = philox_block(stream_low, stream_high, purpose_low, purpose_high,
                                           first_number + (unsigned long long)(i));
    first = stochastic_bf16(first, block.word[0]);
    second = stochastic_bf16(second, block.word[1]);
  }
};

// The thread's elements, of gradients times `scale`; p: their new masters, before rounding. exp_avg may be
// null. scalars: lr, 1 - beta1^t, 1 / sqrt(1 - beta2^t), beta1, 1 - beta1, factor of the weight decay
// round(i + n, first, second) puts moments into the numbers that are stored.
template <typename Master, typename State, int N, typename Round>
__device__ inline void adamw_elements(global<const float> gradient, global<Master> master,
                                      global<State> exp_avg, global<State> exp_avg_sq,
                                      global<const float> scalars, float scale, long long i, float (&p)[N],
                                      const Round& round) {
  const float rate = scalars[0] * lr_multiplier, inverse_sqrt_bias2 = scalars[2];
  const float beta1 = scalars[3], one_minus_beta1 = scalars[4];
  const float decay = 1.0f - rate * scalars[5] * weight_decay, step_size = rate / scalars[1];
  float g[N], first[N], second[N];
  load<N>(gradient, i, g);
  load<N>(master, i, p);
  load<N>(exp_avg_sq, i, second);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) first[n] = g[n] = g[n] * scale;
  if (exp_avg) {
    load<N>(exp_avg, i, first);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) first[n] = beta1 * first[n] + one_minus_beta1 * g[n];
  }
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    second[n] = beta2 * second[n] + one_minus_beta2 * (g[n] * g[n]);
    // eps > 0, so an element that never had a gradient gives 0 / eps = 0.
    const float denominator = sqrtf(second[n]) * inverse_sqrt_bias2 + eps;
    p[n] = p[n] * decay - step_size * (first[n] / denominator);
  }
  store<N>(master, i, p);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) round(i + n, first[n], second[n]);
  if (exp_avg) store<N>(exp_avg, i, first);
  store<N>(exp_avg_sq, i, second);
}

MLG_KERNEL(adamw_update, lr_multiplier, weight_decay, beta2, one_minus_beta2, eps, scaled,
           MLG_UPDATE_CONSTANTS)
template <typename Master, typename State, typename Copy, int N>
__global__ void adamw_update(global<const float> gradient, global<Master> master, global<State> exp_avg,
                             global<State> exp_avg_sq, global<const float> scalars,
                             global<const float> gradient_scale, global<float> average, global<Copy> copy,
                             long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float p[N];
  adamw_elements<Master, State, N>(gradient, master, exp_avg, exp_avg_sq, scalars,
                                   scale_of_gradients(gradient_scale), i, p, NearestMoments());
  finish_update<Master, N, Copy>(p, average, copy, i);
}

MLG_KERNEL(adamw_stochastic_update, lr_multiplier, weight_decay, beta2, one_minus_beta2, eps, scaled,
           MLG_UPDATE_CONSTANTS)
template <typename Master, typename Copy, int N>
__global__ void adamw_stochastic_update(global<const float> gradient, global<Master> master,
                                        global<bf16> exp_avg, global<bf16> exp_avg_sq,
                                        global<const float> scalars, global<const float> gradient_scale,
                                        global<float> average, global<Copy> copy, long long stream,
                                        long long purpose, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  const unsigned long long step = (unsigned long long)(scalars[7]) << 16 | (unsigned long long)(scalars[6]);
  const StochasticMoments round = {uint32_t(stream), high_word(stream), uint32_t(purpose), high_word(purpose),
                                   step << 32};
  float p[N];
  adamw_elements<Master, bf16, N>(gradient, master, exp_avg, exp_avg_sq, scalars,
                                  scale_of_gradients(gradient_scale), i, p, round);
  finish_update<Master, N, Copy>(p, average, copy, i);
}
