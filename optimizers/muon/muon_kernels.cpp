#include "optimizers/muon/muon_kernels.h"

#include <algorithm>
#include <cmath>

namespace mulligan::optimizers {
namespace {

constexpr double kNormFloor = 1e-7;

// Updates one row of the buffer, writes u into `direction` and returns sum(u^2).
template <typename Buffer, typename Direction>
float momentum_row(float scale, float momentum, bool nesterov, std::int64_t columns,
                   const float* __restrict g, Buffer* __restrict buffer, Direction* __restrict direction) {
  for (std::int64_t j = 0; j < columns; ++j) {
    const float gradient = scale * g[j];
    buffer[j] = Buffer(momentum * static_cast<float>(buffer[j]) + gradient);
    const float buffered = static_cast<float>(buffer[j]);  // as rounded
    direction[j] = Direction(nesterov ? gradient + momentum * buffered : buffered);
  }
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < columns; ++j) {
    sum += static_cast<float>(direction[j]) * static_cast<float>(direction[j]);
  }
  return sum;
}

// sums[r] holds the rows' sum(u^2) and becomes the factor that normalises the row.
void rows_to_factors(float* sums, std::int64_t rows, bool row_normalize) {
  double total = 0.0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double norm = std::sqrt(static_cast<double>(sums[row]));
    const double factor = row_normalize ? 1.0 / std::max(norm, kNormFloor) : 1.0;
    total += norm * norm * factor * factor;
    sums[row] = static_cast<float>(factor);
  }
  const double matrix_factor = 1.0 / (std::sqrt(total) + kNormFloor);
  for (std::int64_t row = 0; row < rows; ++row) {
    sums[row] = static_cast<float>(static_cast<double>(sums[row]) * matrix_factor);
  }
}

// Of both kernels: the scaled one's arguments begin with those of the other.
void run_momentum(const sdk::Launch& call, float scale) {
  const int rank = call.tensor(MuonMomentum::gradient).rank;
  const std::int64_t columns = call.dim(MuonMomentum::gradient, rank - 1),
                     rows = call.dim(MuonMomentum::gradient, rank - 2);
  const std::int64_t matrices = rank == 3 ? call.dim(MuonMomentum::gradient, 0) : 1;
  const float momentum = call.data<float>(MuonMomentum::scalars)[muon_momentum];
  const bool nesterov = call.attribute(MuonMomentum::nesterov) != 0,
             row_normalize = call.attribute(MuonMomentum::row_normalize) != 0;
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, columns));
  float* factors = call.workspace<float>();

  sdk::dispatch_master(call.dtype(MuonMomentum::momentum_buffer), [&]<typename Buffer>() {
    sdk::dispatch_master(call.dtype(MuonMomentum::direction), [&]<typename Direction>() {
      Direction* direction = call.data<Direction>(MuonMomentum::direction);
      call.parallel_for(matrices * rows, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t at = row * columns;
          factors[row] = momentum_row(scale, momentum, nesterov, columns,
                                      call.data<const float>(MuonMomentum::gradient) + at,
                                      call.data<Buffer>(MuonMomentum::momentum_buffer) + at, direction + at);
        }
      });
      call.parallel_for(matrices, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t matrix = begin; matrix < end; ++matrix) {
          rows_to_factors(factors + matrix * rows, rows, row_normalize);
        }
      });
      call.parallel_for(matrices * rows, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          Direction* values = direction + row * columns;
          const float factor = factors[row];
          for (std::int64_t j = 0; j < columns; ++j) {
            values[j] = Direction(static_cast<float>(values[j]) * factor);
          }
        }
      });
    });
  });
}

// Of muon_apply and muon_update, whose arguments and attributes begin alike.
void check_apply(sdk::CallChecks& call) {
  call.master_dtype(MuonApply::direction);
  call.master_dtype(MuonApply::master);
  call.same_shape(MuonApply::master, MuonApply::direction);
  call.dtype(MuonApply::scalars, {MLG_F32});
  call.min_elements(MuonApply::scalars, muon_scalar_count);
}

struct ApplyCoefficients {
  float decay, step_size;
};
ApplyCoefficients apply_coefficients(const sdk::Launch& call) {
  const float* scalars = call.data<float>(MuonApply::scalars);
  const double lr = static_cast<double>(scalars[muon_lr]) * call.attribute(MuonApply::lr_multiplier);
  const double decayed = lr * static_cast<double>(scalars[muon_weight_decay_factor]);
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

void MuonMomentum::check_arguments(const sdk::CallChecks& call) {
  call.dtype(gradient, {MLG_F32});
  call.rank(gradient, 2, 3);
  call.master_dtype(momentum_buffer);
  call.same_shape(momentum_buffer, gradient);
  call.dtype(scalars, {MLG_F32});
  call.min_elements(scalars, muon_scalar_count);
  call.master_dtype(direction);
  call.same_shape(direction, gradient);
}

void MuonMomentum::check(sdk::CallChecks& call) {
  check_arguments(call);
  const int rank = call.tensor(gradient).rank;
  const std::int64_t columns = call.dim(gradient, rank - 1);
  call.workspace(columns > 0 ? static_cast<std::size_t>(call.size(gradient) / columns) * sizeof(float) : 0);
}

void MuonMomentum::run(const sdk::Launch& call) {
  run_momentum(call, 1.0f);
}

void MuonScaledMomentum::check_arguments(const sdk::CallChecks& call) {
  MuonMomentum::check_arguments(call);
  call.dtype(gradient_scale, {MLG_F32});
  call.shape(gradient_scale, {1});
}

void MuonScaledMomentum::check(sdk::CallChecks& call) {
  check_arguments(call);
  MuonMomentum::check(call);
}

void MuonScaledMomentum::run(const sdk::Launch& call) {
  run_momentum(call, *call.data<const float>(gradient_scale));
}

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
