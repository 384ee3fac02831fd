#include "optimizers/schedule_free_adamw/schedule_free_step.h"

#include <cmath>

namespace mulligan::optimizers {
namespace {

using enum ScheduleFreeUpdate::Argument;
using enum ScheduleFreeUpdate::Attribute;

// The same for all elements, rounded to f32 once.
struct Coefficients {
  explicit Coefficients(const sdk::Launch& call) : scale(ScheduleFreeUpdate::fused.scale(call)) {
    const float* values = call.data<const float>(scalars);
    rate = static_cast<float>(static_cast<double>(values[free_rate]) * call.attribute(lr_multiplier));
    decay = static_cast<float>(call.attribute(weight_decay) *
                               static_cast<double>(values[free_weight_decay_factor]));
    b1 = call.number(beta1);
    b2 = call.number(beta2);
    rest2 = static_cast<float>(1.0 - call.attribute(beta2));
    floor = call.number(eps);
    kept = 1.0f - *call.data<const float>(share);
  }
  float scale, rate, decay, b1, b2, rest2, floor, kept;
};

template <typename Master>
void update(const sdk::Launch& call, const Coefficients k, std::int64_t begin, std::int64_t end) {
  const float* __restrict g = call.data<const float>(gradient);
  Master* __restrict y = call.data<Master>(master);
  float* __restrict d = call.data<float>(offset);
  float* __restrict v = call.data<float>(exp_avg_sq);
  for (std::int64_t i = begin; i < end; ++i) {
    const float weight = static_cast<float>(y[i]), slope = k.scale * g[i];
    v[i] = k.b2 * v[i] + k.rest2 * (slope * slope);
    const float change = k.rate * (slope / (std::sqrt(v[i]) + k.floor) + k.decay * weight);
    const float before = d[i];
    d[i] = k.kept * (before - k.b1 * change);
    y[i] = Master(weight + (before - d[i]) - change);
  }
}

}  // namespace

void ScheduleFreeShare::check(const sdk::CallChecks& call) {
  call.scalars(scalars, free_scalar_count);
  call.f32(weight_sum, {1});
  call.like(share, weight_sum);
}

void ScheduleFreeShare::run(const sdk::Launch& call) {
  const float rate = call.data<const float>(scalars)[free_rate];
  float& sum = *call.data<float>(weight_sum);
  sum += rate * rate;
  *call.data<float>(share) = sum > 0.0f ? rate * rate / sum : 1.0f;
}

void ScheduleFreeUpdate::check(const sdk::CallChecks& call) {
  call.dtype(gradient, {MLG_F32});
  call.master_dtype(master);
  call.same_shape(master, gradient);
  call.like(offset, gradient);
  call.like(exp_avg_sq, gradient);
  call.f32(share, {1});
  call.scalars(scalars, free_scalar_count);
  fused.check(call);
}

void ScheduleFreeUpdate::run(const sdk::Launch& call) {
  const Coefficients k(call);
  sdk::dispatch_master(call.dtype(ScheduleFreeUpdate::master), [&]<typename Master>() {
    fused.run<Master>(call,
                      [&](std::int64_t begin, std::int64_t end) { update<Master>(call, k, begin, end); });
  });
}

void ScheduleFreeAverage::check(const sdk::CallChecks& call) {
  call.master_dtype(master);
  call.dtype(offset, {MLG_F32});
  call.same_shape(offset, master);
  call.like(evaluation, offset);
}

void ScheduleFreeAverage::run(const sdk::Launch& call) {
  const auto factor = call.number(ratio);
  sdk::dispatch_master(call.dtype(master), [&]<typename Master>() {
    call.parallel_for(call.size(master), 16384, [&](std::int64_t begin, std::int64_t end) {
      const Master* __restrict y = call.data<const Master>(master);
      const float* __restrict d = call.data<const float>(offset);
      float* __restrict x = call.data<float>(evaluation);
      for (std::int64_t i = begin; i < end; ++i) x[i] = static_cast<float>(y[i]) - factor * d[i];
    });
  });
}

}  // namespace mulligan::optimizers
