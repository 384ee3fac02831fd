#include "optimizers/adamw/adamw_step.h"

#include <mulligan/philox.hpp>

#include <cmath>

namespace mulligan::optimizers {
namespace {

using enum AdamwUpdate::Argument;
using enum AdamwUpdate::Attribute;

// Everything that is the same for all elements, rounded to f32 once.
struct Coefficients {
  float scale, decay, step_size, beta1, one_minus_beta1, beta2, one_minus_beta2, inverse_sqrt_bias2, eps;
};

Coefficients coefficients_of(const sdk::Launch& call) {
  const float* values = call.data<float>(scalars);
  const double rate = static_cast<double>(values[AdamwUpdate::lr]) * call.attribute(lr_multiplier);
  const double decayed = rate * static_cast<double>(values[AdamwUpdate::weight_decay_factor]);
  const auto f32 = [](double value) { return static_cast<float>(value); };
  return {AdamwUpdate::fused.scale(call),
          f32(1.0 - decayed * call.attribute(weight_decay)),
          f32(rate / static_cast<double>(values[AdamwUpdate::bias_correction1])),
          values[AdamwUpdate::beta1],
          values[AdamwUpdate::one_minus_beta1],
          f32(call.attribute(beta2)),
          f32(1.0 - call.attribute(beta2)),
          values[AdamwUpdate::inverse_sqrt_bias_correction2],
          f32(call.attribute(eps))};
}

// Rounding to the nearest.
struct Nearest {
  template <bool with_mean, typename State>
  void store(std::int64_t i, float first, float second, State* m, State* v) const {
    if constexpr (with_mean) m[i] = State(first);
    v[i] = State(second);
  }
};

struct Stochastic {
  sdk::PhiloxKey stream;
  std::uint64_t first_number;  // of element 0
  template <bool with_mean>
  void store(std::int64_t i, float first, float second, sdk::bfloat16* m, sdk::bfloat16* v) const {
    const auto words = stream.block(first_number + static_cast<std::uint64_t>(i));
    if constexpr (with_mean) m[i] = sdk::bfloat16(sdk::stochastic_bf16(first, words[0]));
    v[i] = sdk::bfloat16(sdk::stochastic_bf16(second, words[1]));
  }
};

// Elements begin to end - 1 of the tensors. Without `with_mean` the gradient stands for m.
template <bool with_mean, typename Master, typename State, typename Rounding>
void update(const Coefficients k, std::int64_t begin, std::int64_t end, const float* __restrict g,
            Master* __restrict p, State* __restrict m, State* __restrict v, const Rounding rounding) {
  for (std::int64_t i = begin; i < end; ++i) {
    const float gradient = k.scale * g[i];
    const float first =
        with_mean ? k.beta1 * static_cast<float>(m[i]) + k.one_minus_beta1 * gradient : gradient;
    const float second = k.beta2 * static_cast<float>(v[i]) + k.one_minus_beta2 * (gradient * gradient);
    // eps > 0, so an element that never had a gradient gives 0 / eps = 0.
    const float denominator = std::sqrt(second) * k.inverse_sqrt_bias2 + k.eps;
    p[i] = Master(static_cast<float>(p[i]) * k.decay - k.step_size * (first / denominator));
    rounding.template store<with_mean>(i, first, second, m, v);
  }
}

template <typename State, typename Rounding>
void run_update(const sdk::Launch& call, const Rounding rounding) {
  const Coefficients k = coefficients_of(call);
  sdk::dispatch_master(call.dtype(AdamwUpdate::master), [&]<typename Master>() {
    State* mean = call.data<State>(AdamwUpdate::exp_avg);
    const float* g = call.data<const float>(AdamwUpdate::gradient);
    Master* p = call.data<Master>(AdamwUpdate::master);
    State* v = call.data<State>(AdamwUpdate::exp_avg_sq);
    AdamwUpdate::fused.run<Master>(call, [&](std::int64_t begin, std::int64_t end) {
      if (mean) {
        update<true>(k, begin, end, g, p, mean, v, rounding);
      } else {
        update<false>(k, begin, end, g, p, mean, v, rounding);
      }
    });
  });
}

}  // namespace

void AdamwUpdate::check(const sdk::CallChecks& call) {
  call.dtype(gradient, {MLG_F32});
  call.master_dtype(master);
  call.same_shape(master, gradient);
  call.master_dtype(exp_avg);
  call.same_shape(exp_avg, gradient);
  call.master_dtype(exp_avg_sq);
  call.same_shape(exp_avg_sq, gradient);
  call.same_dtype(exp_avg_sq, exp_avg);
  call.scalars(scalars, least_scalars);
  fused.check(call);
}

void AdamwUpdate::run(const sdk::Launch& call) {
  sdk::dispatch_master(call.dtype(AdamwUpdate::exp_avg_sq),
                       [&]<typename State>() { run_update<State>(call, Nearest()); });
}

void AdamwStochasticUpdate::check(const sdk::CallChecks& call) {
  AdamwUpdate::check(call);
  call.dtype(AdamwUpdate::exp_avg, {MLG_BF16});
  call.dtype(AdamwUpdate::exp_avg_sq, {MLG_BF16});
  call.min_elements(AdamwUpdate::scalars, AdamwUpdate::scalar_count);
  call.attribute_range(stream, 0, 0x1p53);
}

void AdamwStochasticUpdate::run(const sdk::Launch& call) {
  const float* values = call.data<float>(AdamwUpdate::scalars);
  const auto low = static_cast<std::uint64_t>(values[AdamwUpdate::step_low]);
  const auto high = static_cast<std::uint64_t>(values[AdamwUpdate::step_high]);
  const Stochastic rounding{sdk::PhiloxKey(static_cast<std::uint64_t>(call.attribute(stream)), purpose),
                            (high << 16 | low) << 32};
  run_update<sdk::bfloat16>(call, rounding);
}

}  // namespace mulligan::optimizers
