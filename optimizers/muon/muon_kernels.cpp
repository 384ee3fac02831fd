#include "optimizers/muon/muon_kernels.h"

#include "optimizers/common/momentum.h"

namespace mulligan::optimizers {
namespace {

template <typename Direction, typename Master>
void apply(const sdk::Launch& call, float decay, float step_size, std::int64_t begin, std::int64_t end) {
  const Direction* __restrict direction = call.data<const Direction>(MuonUpdate::direction);
  Master* __restrict master = call.data<Master>(MuonUpdate::master);
  for (std::int64_t i = begin; i < end; ++i) {
    master[i] = Master(static_cast<float>(master[i]) * decay - step_size * static_cast<float>(direction[i]));
  }
}

}  // namespace

void MuonUpdate::check(const sdk::CallChecks& call) {
  call.master_dtype(direction);
  call.master_dtype(master);
  call.same_shape(master, direction);
  call.scalars(scalars, matrix_scalar_count);
  fused.check(call);
}

void MuonUpdate::run(const sdk::Launch& call) {
  const float* values = call.data<float>(scalars);
  const double lr = static_cast<double>(values[matrix_lr]) * call.attribute(lr_multiplier);
  const double decayed = lr * static_cast<double>(values[matrix_weight_decay_factor]);
  const auto decay = static_cast<float>(1.0 - decayed * call.attribute(weight_decay)),
             step_size = static_cast<float>(lr * call.attribute(scale));
  sdk::dispatch_master(call.dtype(MuonUpdate::direction), [&]<typename Direction>() {
    sdk::dispatch_master(call.dtype(MuonUpdate::master), [&]<typename Master>() {
      fused.run<Master>(call, [&](std::int64_t begin, std::int64_t end) {
        apply<Direction, Master>(call, decay, step_size, begin, end);
      });
    });
  });
}

}  // namespace mulligan::optimizers
