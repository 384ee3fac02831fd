#include "plugins/losses/softcap_ce/softcap_ce_kernels.h"

#include <mulligan/lane_sum.hpp>
#include <mulligan/vector_math.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mulligan::losses {
namespace {

// Logits capped at a time: their values stay in the first-level cache between the maximum and the sum.
constexpr std::int64_t kBlock = 1024;
// Longest row whose exponentials and slopes are kept (on the stack, 64 KiB) between forward and backward.
constexpr std::int64_t kKeptRow = 8 * kBlock;

// z without its constant (c tanh(x/c), whose rounding error is smaller than the shifted form's), and dz/dx.
struct Capped {
  float value, slope;
};

template <bool capped>
inline Capped apply_cap(float x, float cap, float inverse_cap) {
  if constexpr (!capped) return {x, 1.0f};
  const sdk::TanhAndSlope t = sdk::fast_tanh_and_slope(x * inverse_cap);
  return {cap * t.value, t.slope};
}

// The sum of e^(z - maximum) over a row.
struct RowSum {
  float maximum;
  double sum;
  double logsumexp() const { return static_cast<double>(maximum) + std::log(sum); }
};

// Of one row of capped logits, in one pass: block by block, the sum so far is rescaled to the new maximum.
template <bool capped, typename T>
RowSum row_sum(const T* x, std::int64_t count, float cap, float inverse_cap) {
  alignas(64) float z[kBlock];
  float maximum = std::numeric_limits<float>::lowest();  // finite: a block of -inf must not give inf - inf
  double sum = 0.0;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, count - begin);
    const T* block = x + begin;
    float highest = maximum;
#pragma omp simd reduction(max : highest)
    for (std::int64_t j = 0; j < length; ++j) {
      z[j] = apply_cap<capped>(static_cast<float>(block[j]), cap, inverse_cap).value;
      highest = z[j] > highest ? z[j] : highest;
    }
    const float part = sdk::lane_sum(
        length, [&z, highest](std::int64_t j) { return sdk::fast_exp_nonpositive(z[j] - highest); });
    sum = sum * std::exp(static_cast<double>(maximum) - static_cast<double>(highest)) +
          static_cast<double>(part);
    maximum = highest;
  }
  return {maximum, sum};
}

template <bool capped, typename T>
void forward_row(const sdk::Launch& call, std::int64_t row, float cap, float inverse_cap) {
  const std::int64_t vocabulary = call.dim(SoftcapCeForward::logits, 1);

  const T* x = call.data<const T>(SoftcapCeForward::logits) + row * vocabulary;
  const std::int64_t target = call.data<const std::int32_t>(SoftcapCeForward::targets)[row];
  double loss = 0.0, lse = 0.0;
  if (target >= 0) {
    lse = row_sum<capped>(x, vocabulary, cap, inverse_cap).logsumexp();
    loss = std::numeric_limits<double>::quiet_NaN();
    if (target < vocabulary) {
      loss = lse - apply_cap<capped>(static_cast<float>(x[target]), cap, inverse_cap).value;
    }
    lse += cap;
  }
  call.data<float>(SoftcapCeForward::token_loss)[row] = static_cast<float>(loss);
  call.data<float>(SoftcapCeForward::lse)[row] = static_cast<float>(lse);
}

// Not __restrict: dx may be x. Every element is read before it is written,
// so lanes do not depend on one another.
template <bool capped, typename T>
void backward_row(const T* x, T* dx, std::int64_t count, float lse, float upstream, float cap,
                  float inverse_cap) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < count; ++j) {
    const Capped z = apply_cap<capped>(static_cast<float>(x[j]), cap, inverse_cap);
    dx[j] = T(upstream * sdk::fast_exp(z.value - lse) * z.slope);
  }
}

template <bool capped, typename T>
void gradient_row(const sdk::Launch& call, std::int64_t row, float cap, float inverse_cap) {
  const std::int64_t vocabulary = call.dim(SoftcapCeBackward::logits, 1);

  const T* x = call.data<const T>(SoftcapCeBackward::logits) + row * vocabulary;
  T* dx = call.data<T>(SoftcapCeBackward::dlogits) + row * vocabulary;
  const std::int64_t target = call.data<const std::int32_t>(SoftcapCeBackward::targets)[row];
  const float upstream = call.data<const float>(SoftcapCeBackward::upstream)[row];
  if (target < 0 || upstream == 0.0f) {
    std::fill_n(dx, vocabulary, T(0.0f));
  } else if (target >= vocabulary) {
    std::fill_n(dx, vocabulary, T(std::numeric_limits<float>::quiet_NaN()));
  } else {
    const float lse = call.data<const float>(SoftcapCeBackward::lse)[row] - cap;
    // Before the loop: it may overwrite the logit.
    const Capped z = apply_cap<capped>(static_cast<float>(x[target]), cap, inverse_cap);
    const T at_target(upstream * (sdk::fast_exp(z.value - lse) - 1.0f) * z.slope);
    backward_row<capped>(x, dx, vocabulary, lse, upstream, cap, inverse_cap);
    dx[target] = at_target;
  }
}

// Forward and backward of a row of at most kKeptRow logits with a target among them: returns the loss.
// Exponentials are kept relative to the maximum so far of their block, as row_sum() sums them. dx may
// be x: all of x is read first.
template <bool capped, typename T>
double both_of_kept_row(const T* x, T* dx, std::int64_t count, std::int64_t target, float upstream, float cap,
                        float inverse_cap) {
  alignas(64) float exponential[kKeptRow], slope[kKeptRow];
  float reference[kKeptRow / kBlock];
  float maximum = std::numeric_limits<float>::lowest();
  double sum = 0.0;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, count - begin);
    const T* block = x + begin;
    float *e = exponential + begin, *s = slope + begin;
    float highest = maximum;
#pragma omp simd reduction(max : highest)
    for (std::int64_t j = 0; j < length; ++j) {
      const Capped z = apply_cap<capped>(static_cast<float>(block[j]), cap, inverse_cap);
      e[j] = z.value;
      if constexpr (capped) s[j] = z.slope;
      highest = z.value > highest ? z.value : highest;
    }
    const float part = sdk::lane_sum(
        length, [e, highest](std::int64_t j) { return e[j] = sdk::fast_exp_nonpositive(e[j] - highest); });
    sum = sum * std::exp(static_cast<double>(maximum) - static_cast<double>(highest)) +
          static_cast<double>(part);
    reference[begin / kBlock] = maximum = highest;
  }
  const double lse = static_cast<double>(maximum) + std::log(sum);
  const Capped at_target = apply_cap<capped>(static_cast<float>(x[target]), cap, inverse_cap);
  if (upstream == 0.0f) {
    std::fill_n(dx, count, T(0.0f));
    return lse - at_target.value;
  }
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, count - begin);
    const float *e = exponential + begin, *s = slope + begin;
    const auto factor =
        static_cast<float>(upstream * std::exp(static_cast<double>(reference[begin / kBlock]) - lse));
    T* __restrict out = dx + begin;
    for (std::int64_t j = 0; j < length; ++j) out[j] = T(capped ? factor * e[j] * s[j] : factor * e[j]);
  }
  dx[target] = T(upstream * static_cast<float>(std::expm1(at_target.value - lse)) * at_target.slope);
  return lse - at_target.value;
}

// The same of a longer row, in two passes.
template <bool capped, typename T>
double both_of_long_row(const T* x, T* dx, std::int64_t count, std::int64_t target, float upstream, float cap,
                        float inverse_cap) {
  const RowSum row = row_sum<capped>(x, count, cap, inverse_cap);
  const Capped at_target = apply_cap<capped>(static_cast<float>(x[target]), cap, inverse_cap);
  const double loss = row.logsumexp() - at_target.value;
  if (upstream == 0.0f) {
    std::fill_n(dx, count, T(0.0f));
    return loss;
  }
  // Relative to the maximum: a logsumexp rounded to float would be off by more than the exponentials.
  backward_row<capped>(x, dx, count, row.maximum, static_cast<float>(upstream / row.sum), cap, inverse_cap);
  dx[target] = T(upstream * static_cast<float>(std::expm1(-loss)) * at_target.slope);
  return loss;
}

template <bool capped, typename T>
void both_row(const sdk::Launch& call, std::int64_t row, float cap, float inverse_cap) {
  const std::int64_t vocabulary = call.dim(SoftcapCeBoth::logits, 1);

  const T* x = call.data<const T>(SoftcapCeBoth::logits) + row * vocabulary;
  T* dx = call.data<T>(SoftcapCeBoth::dlogits) + row * vocabulary;
  const std::int64_t target = call.data<const std::int32_t>(SoftcapCeBoth::targets)[row];
  const float upstream = call.data<const float>(SoftcapCeBoth::upstream)[row];
  double loss = 0.0;
  if (target < 0 || target >= vocabulary) {
    if (target >= 0) loss = std::numeric_limits<double>::quiet_NaN();
    std::fill_n(dx, vocabulary, T(upstream == 0.0f ? 0.0f : static_cast<float>(loss)));
  } else if (vocabulary <= kKeptRow) {
    loss = both_of_kept_row<capped>(x, dx, vocabulary, target, upstream, cap, inverse_cap);
  } else {
    loss = both_of_long_row<capped>(x, dx, vocabulary, target, upstream, cap, inverse_cap);
  }
  call.data<float>(SoftcapCeBoth::token_loss)[row] = static_cast<float>(loss);
}

// `per_row`: the arguments of [T] f32, T being the number of rows of the logits.
void check_rows(const sdk::CallChecks& call, std::initializer_list<std::uint32_t> per_row) {
  call.matrix(SoftcapCeInputs::logits);
  call.require(call.dim(SoftcapCeInputs::logits, 1) > 0, SoftcapCeInputs::logits,
               "must have a vocabulary of at least one");
  call.attribute_range(SoftcapCeInputs::softcap, 0, 1e6);
  const std::int64_t rows = call.dim(SoftcapCeInputs::logits, 0);
  call.i32(SoftcapCeInputs::targets, {rows});
  for (const std::uint32_t argument : per_row) call.f32(argument, {rows});
}

// Calls body.operator()<capped, T>(row, cap, 1 / cap) for all rows.
template <typename Body>
void over_rows(const sdk::Launch& call, Body&& body) {
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / call.dim(SoftcapCeInputs::logits, 1));
  const float cap = call.number(SoftcapCeInputs::softcap), inverse_cap = cap > 0.0f ? 1.0f / cap : 0.0f;
  sdk::dispatch_compute(call.dtype(SoftcapCeInputs::logits), [&]<typename T>() {
    call.parallel_for(call.dim(SoftcapCeInputs::logits, 0), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        if (cap > 0.0f) {
          body.template operator()<true, T>(row, cap, inverse_cap);
        } else {
          body.template operator()<false, T>(row, cap, inverse_cap);
        }
      }
    });
  });
}

}  // namespace

void SoftcapCeForward::check(const sdk::CallChecks& call) {
  check_rows(call, {token_loss, lse});
}

void SoftcapCeForward::run(const sdk::Launch& call) {
  over_rows(call, [&]<bool capped, typename T>(auto... row) { forward_row<capped, T>(call, row...); });
}

void SoftcapCeBackward::check(const sdk::CallChecks& call) {
  check_rows(call, {lse, upstream});
  call.like(dlogits, logits);
}

void SoftcapCeBackward::run(const sdk::Launch& call) {
  over_rows(call, [&]<bool capped, typename T>(auto... row) { gradient_row<capped, T>(call, row...); });
}

void SoftcapCeBoth::check(const sdk::CallChecks& call) {
  check_rows(call, {upstream, token_loss});
  call.like(dlogits, logits);
}

void SoftcapCeBoth::run(const sdk::Launch& call) {
  over_rows(call, [&]<bool capped, typename T>(auto... row) { both_row<capped, T>(call, row...); });
}

}  // namespace mulligan::losses
