#include "optimizers/adamw/adamw_step.h"

#include <cmath>

namespace mulligan::optimizers {
namespace {

using enum AdamwStep::Argument;
using enum AdamwStep::Attribute;

// Everything that is the same for all elements, rounded to f32 once.
struct Coefficients {
  float decay, step_size, beta1, one_minus_beta1, beta2, one_minus_beta2, inverse_sqrt_bias2, eps;
};

Coefficients coefficients_of(const sdk::Launch& call) {
  const float* values = call.data<float>(scalars);
  const double rate = static_cast<double>(values[AdamwStep::lr]) * call.attribute(lr_multiplier);
  const double decayed = rate * static_cast<double>(values[AdamwStep::weight_decay_factor]);
  const auto f32 = [](double value) { return static_cast<float>(value); };
  return {f32(1.0 - decayed * call.attribute(weight_decay)),
          f32(rate / static_cast<double>(values[AdamwStep::bias_correction1])),
          values[AdamwStep::beta1],
          values[AdamwStep::one_minus_beta1],
          f32(call.attribute(beta2)),
          f32(1.0 - call.attribute(beta2)),
          values[AdamwStep::inverse_sqrt_bias_correction2],
          f32(call.attribute(eps))};
}

template <typename Master, typename State>
void update(const Coefficients k, std::int64_t count, const float* __restrict g, Master* __restrict p,
            State* __restrict m, State* __restrict v) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = g[i];
    const float first = k.beta1 * static_cast<float>(m[i]) + k.one_minus_beta1 * gradient;
    const float second = k.beta2 * static_cast<float>(v[i]) + k.one_minus_beta2 * (gradient * gradient);
    // eps > 0, so an element that never had a gradient gives 0 / eps = 0.
    const float denominator = std::sqrt(second) * k.inverse_sqrt_bias2 + k.eps;
    p[i] = Master(static_cast<float>(p[i]) * k.decay - k.step_size * (first / denominator));
    m[i] = State(first);
    v[i] = State(second);
  }
}

}  // namespace

void AdamwStep::check(sdk::CallChecks& call) {
  call.dtype(gradient, {MLG_F32});
  call.compute_dtype(master);
  call.same_shape(master, gradient);
  call.compute_dtype(exp_avg);
  call.same_shape(exp_avg, gradient);
  call.like(exp_avg_sq, exp_avg);
  call.dtype(scalars, {MLG_F32});
  call.min_elements(scalars, scalar_count);
}

void AdamwStep::run(const sdk::Launch& call) {
  const Coefficients k = coefficients_of(call);
  sdk::dispatch_compute(call.dtype(master), [&]<typename Master>() {
    sdk::dispatch_compute(call.dtype(exp_avg), [&]<typename State>() {
      call.parallel_for(call.size(gradient), 16384, [&](std::int64_t begin, std::int64_t end) {
        update(k, end - begin, call.data<const float>(gradient) + begin, call.data<Master>(master) + begin,
               call.data<State>(exp_avg) + begin, call.data<State>(exp_avg_sq) + begin);
      });
    });
  });
}

}  // namespace mulligan::optimizers
