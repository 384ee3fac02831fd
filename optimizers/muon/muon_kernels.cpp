#include "optimizers/muon/muon_kernels.h"

#include "optimizers/common/momentum.h"

namespace mulligan::optimizers {
namespace {

// Of muon_apply and muon_update, whose arguments and attributes begin alike.
void check_apply(sdk::CallChecks& call) {
  call.master_dtype(MuonApply::direction);
  call.master_dtype(MuonApply::master);
  call.same_shape(MuonApply::master, MuonApply::direction);
  call.dtype(MuonApply::scalars, {MLG_F32});
  call.min_elements(MuonApply::scalars, matrix_scalar_count);
}

struct ApplyCoefficients {
  float decay, step_size;
};
ApplyCoefficients apply_coefficients(const sdk::Launch& call) {
  const float* scalars = call.data<float>(MuonApply::scalars);
  const double lr = static_cast<double>(scalars[matrix_lr]) * call.attribute(MuonApply::lr_multiplier);
  const double decayed = lr * static_cast<double>(scalars[matrix_weight_decay_factor]);
  return {static_cast<float>(1.0 - decayed * call.attribute(MuonApply::weight_decay)),
          static_cast<float>(lr * call.attribute(MuonApply::scale))};
}

template <typename Direction, typename Master>
void apply(const sdk::Launch& call, float decay, float step_size, std::int64_t begin, std::int64_t end) {
  const Direction* __restrict direction = call.data<const Direction>(MuonApply::direction);
  Master* __restrict master = call.data<Master>(MuonApply::master);
  for (std::int64_t i = begin; i < end; ++i) {
    master[i] = Master(static_cast<float>(master[i]) * decay - step_size * static_cast<float>(direction[i]));
  }
}

}  // namespace

void MuonApply::check(sdk::CallChecks& call) {
  check_apply(call);
}

void MuonApply::run(const sdk::Launch& call) {
  const auto [decay, step_size] = apply_coefficients(call);
  sdk::dispatch_master(call.dtype(MuonApply::direction), [&]<typename Direction>() {
    sdk::dispatch_master(call.dtype(MuonApply::master), [&]<typename Master>() {
      call.parallel_for(call.size(MuonApply::direction), 16384, [&](std::int64_t begin, std::int64_t end) {
        apply<Direction, Master>(call, decay, step_size, begin, end);
      });
    });
  });
}

void MuonUpdate::check(sdk::CallChecks& call) {
  check_apply(call);
  fused.check(call);
}

void MuonUpdate::run(const sdk::Launch& call) {
  const auto [decay, step_size] = apply_coefficients(call);
  sdk::dispatch_master(call.dtype(MuonUpdate::direction), [&]<typename Direction>() {
    sdk::dispatch_master(call.dtype(MuonUpdate::master), [&]<typename Master>() {
      fused.run<Master>(call, [&](std::int64_t begin, std::int64_t end) {
        apply<Direction, Master>(call, decay, step_size, begin, end);
      });
    });
  });
}

}  // namespace mulligan::optimizers
