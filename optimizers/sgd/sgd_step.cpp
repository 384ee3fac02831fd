#include "optimizers/sgd/sgd_step.h"

namespace mulligan::optimizers {
namespace {

using enum SgdUpdate::Argument;
using enum SgdUpdate::Attribute;

// The same for all elements. Coupled and decoupled decay are one formula with one of the two factors neutral.
struct Coefficients {
  float scale, rate, decay, coupled_decay, momentum;
  bool nesterov;
};

Coefficients coefficients_of(const sdk::Launch& call) {
  const float* values = call.data<float>(scalars);
  const double rate = static_cast<double>(values[SgdUpdate::lr]) * call.attribute(lr_multiplier);
  const double weight =
      call.attribute(weight_decay) * static_cast<double>(values[SgdUpdate::weight_decay_factor]);
  const bool is_decoupled = call.flag(decoupled);
  return {SgdUpdate::fused.scale(call),
          static_cast<float>(rate),
          static_cast<float>(is_decoupled ? 1.0 - rate * weight : 1.0),
          static_cast<float>(is_decoupled ? 0.0 : weight),
          values[SgdUpdate::momentum],
          call.flag(nesterov)};
}

template <typename Master>
void update(const Coefficients k, std::int64_t count, const float* __restrict g, Master* __restrict p,
            float* __restrict buffer) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float weight = static_cast<float>(p[i]);
    const float slope = k.scale * g[i] + k.coupled_decay * weight;
    float direction = slope;
    if (buffer) {
      const float buffered = k.momentum * buffer[i] + slope;
      buffer[i] = buffered;
      direction = k.nesterov ? slope + k.momentum * buffered : buffered;
    }
    p[i] = Master(weight * k.decay - k.rate * direction);
  }
}

}  // namespace

void SgdUpdate::check(const sdk::CallChecks& call) {
  call.dtype(gradient, {MLG_F32});
  call.master_dtype(master);
  call.same_shape(master, gradient);
  call.like(momentum_buffer, gradient);
  call.scalars(scalars, scalar_count);
  fused.check(call);
}

void SgdUpdate::run(const sdk::Launch& call) {
  const Coefficients k = coefficients_of(call);
  sdk::dispatch_master(call.dtype(SgdUpdate::master), [&]<typename Master>() {
    float* buffer = call.data<float>(SgdUpdate::momentum_buffer);
    fused.run<Master>(call, [&](std::int64_t begin, std::int64_t end) {
      update(k, end - begin, call.data<const float>(SgdUpdate::gradient) + begin,
             call.data<Master>(SgdUpdate::master) + begin, buffer ? buffer + begin : nullptr);
    });
  });
}

}  // namespace mulligan::optimizers
