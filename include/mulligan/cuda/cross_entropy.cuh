// Cross-entropy of logits [rows, vocabulary] against targets [rows], with or without a softcap c:
//   z = c tanh(x / c) + c, or z = x;   lse = log sum exp(z);   loss = lse - z[target]
//   dx = upstream (exp(z - lse) - onehot(target)) dz/dx
// One block per row. The forward pass streams the row once, with a running maximum and sum per thread;
// the backward pass streams it once more. Both in one keep the row in registers where it fits. Inside, z goes
// without its constant + c, whose rounding error is larger.
//
// A negative target: loss and gradient 0. A target from vocabulary on: NaN. Determinism: rows are
// independent, sums have a fixed order. dx may be the memory of x: an element is read before it is written,
// by the same thread.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {

MLG_CONST_INT(vocabulary)
MLG_CONST_INT(block_threads)
MLG_CONST_INT(capped)
MLG_CONST_FLOAT(cap)
#define MLG_CROSS_ENTROPY_CONSTANTS vocabulary, block_threads, capped, cap

// 2^x and 1/x without the cases for denormal numbers, which take more instructions than the rest. What underflows here is
// below all that counts in a sum.
__device__ inline float exp2_flushed(float x) {
#ifdef __CUDACC__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return std::exp2(x);
#endif
}
__device__ inline float reciprocal_flushed(float x) {
#ifdef __CUDACC__
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0f / x;
#endif
}
constexpr float kLog2E = 1.44269504f;

// Logits of 16 bits with a softcap are at most `cap`, and e^-2cap is a number: the cap is subtracted in place of the row's
// maximum, which then need not be known.
template <typename T>
__device__ inline bool bounded() {
  constexpr float kMost = 40.0f;
  return sizeof(T) == 2 && capped && cap <= kMost;
}

// How far a bounded logit's z lies below the cap, of 2 cap: z = cap (1 - 2 r), dz/dx = 4 (r - r^2). The absolute error is
// about 1e-7, far below that of a bf16 logit.
__device__ inline float below_cap(float x) {
  return reciprocal_flushed(exp2_flushed(x * (2.0f * kLog2E / cap)) + 1.0f);
}
__device__ inline float quarter_slope(float r) {
  return r - r * r;
}
// e^(z - cap)
__device__ inline float power_below_cap(float r) {
  return exp2_flushed(r * (-2.0f * kLog2E * cap));
}

struct Capped {
  float value, slope;  // z without its constant, dz/dx
};

template <typename T>
__device__ inline Capped apply_cap(float x) {
  if (!capped) return {x, 1.0f};
  // Of constants, so computed by the compiler: a division by the cap would cost as much as the rest.
  float t;
  if (sizeof(T) == 2) {
    t = 1.0f - 2.0f * below_cap(x);
  } else {
    t = tanhf(x * (1.0f / cap));
  }
  return {cap * t, 1.0f - t * t};
}

// dz/dx of a capped value.
__device__ inline float cap_slope(float value) {
  if (!capped) return 1.0f;
  const float t = value * (1.0f / cap);
  return 1.0f - t * t;
}

template <typename T>
__device__ inline float exponential(float power) {
  return sizeof(T) == 2 ? exp2_flushed(power * kLog2E) : __expf(power);
}

// The sum of e^(z - maximum) over some elements.
struct RunningSum {
  float maximum, sum;
};

template <typename T, int N>
__device__ inline void add_logits(global<const T> x, long long at, RunningSum& running) {
  float z[N];
  load<N>(x, at, z);
  if (bounded<T>()) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) running.sum += power_below_cap(below_cap(z[n]));
    return;
  }
  float maximum = running.maximum;
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    z[n] = apply_cap<T>(z[n]).value;
    maximum = fmaxf(maximum, z[n]);
  }
  float part = 0;
  MLG_UNROLL
  for (int n = 0; n < N; ++n) part += exponential<T>(z[n] - maximum);
  running.sum = running.sum * __expf(running.maximum - maximum) + part;
  running.maximum = maximum;
}

// Those of all threads of the block: `running.sum` becomes that of the row.
template <typename T>
__device__ inline void join(RunningSum& running, shared_array<float, 32>& scratch) {
  const float own = running.maximum;
  if (bounded<T>()) {
    running.maximum = cap;
  } else {
    running.maximum = block_max(own, scratch, block_threads / 32);
    running.sum *= __expf(own - running.maximum);
  }
  running.sum = block_sum(running.sum, scratch, block_threads / 32);
}

constexpr float kLowest = -3.0e38f;  // finite: -inf - -inf would be NaN

// The body of the forward kernels. `keep_lse`: lse is computed for negative targets, too; otherwise it
// is 0 there.
template <typename T, int N>
__device__ inline void cross_entropy_row(global<const T> x, global<const int> targets,
                                         global<float> token_loss, global<float> lse, bool keep_lse) {
  __shared__ shared_array<float, 32> scratch;
  const long long row = blockIdx.x;
  const int target = targets[row];
  if (target < 0 && !keep_lse) {
    if (threadIdx.x == 0) {
      token_loss[row] = 0.0f;
      lse[row] = 0.0f;
    }
    return;
  }
  RunningSum running = {kLowest, 0.0f};
  for (int j = int(threadIdx.x) * N; j < vocabulary; j += block_threads * N) {
    add_logits<T, N>(x, row * vocabulary + j, running);
  }
  join<T>(running, scratch);
  if (threadIdx.x != 0) return;
  const float maximum = running.maximum, log_sum = logf(running.sum);
  float loss = 0;
  if (target >= vocabulary) {
    loss = bits_to_float(0x7FC00000u);
  } else if (target >= 0) {
    // The difference first: both may be large.
    loss = (maximum - apply_cap<T>(to_float(x[row * vocabulary + target])).value) + log_sum;
  }
  token_loss[row] = loss;
  lse[row] = maximum + log_sum + (capped ? cap : 0.0f);
}

// What a row's gradient is multiplied with.
__device__ inline float row_weight(int target, global<const float> upstream, long long row) {
  if (target < 0) return 0.0f;
  return target >= vocabulary ? bits_to_float(0x7FC00000u) : float(upstream[row]);
}

// The body of the backward kernels.
template <typename T, int N>
__device__ inline void cross_entropy_gradient_row(global<const T> x, global<const int> targets,
                                                  global<const float> lse, global<const float> upstream,
                                                  global<T> dx) {
  const long long row = blockIdx.x;
  const int target = targets[row];
  const float weight = row_weight(target, upstream, row);
  const float logsum = lse[row] - (capped ? cap : 0.0f);
  for (int j = int(threadIdx.x) * N; j < vocabulary; j += block_threads * N) {
    float d[N];
    if (weight == 0.0f) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) d[n] = 0;
    } else {
      load<N>(x, row * vocabulary + j, d);
      const int place = target - j;
      if (bounded<T>()) {
        const float top = (cap - logsum) * kLog2E, four_weights = 4.0f * weight;
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          const float r = below_cap(d[n]), probability = exp2_flushed(r * (-2.0f * kLog2E * cap) + top);
          d[n] = four_weights * (probability - (n == place ? 1.0f : 0.0f)) * quarter_slope(r);
        }
      } else {
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          const Capped z = apply_cap<T>(d[n]);
          d[n] = weight * (exponential<T>(z.value - logsum) - (n == place ? 1.0f : 0.0f)) * z.slope;
        }
      }
    }
    store<N>(dx, row * vocabulary + j, d);
  }
}

// The body of kernels that compute token_loss and dx at once. Each thread keeps K slices of N elements of the
// row in registers: first z, then exp(z - maximum) dz/dx. K = 0: the row is too long and is
// streamed twice.
template <typename T, int N, int K>
__device__ inline void cross_entropy_both_row(global<const T> x, global<const int> targets,
                                              global<const float> upstream, global<float> token_loss,
                                              global<T> dx) {
  __shared__ shared_array<float, 32> scratch;
  const long long row = blockIdx.x, start = row * vocabulary;
  const int target = targets[row];
  const float weight = row_weight(target, upstream, row);
  const bool counts = target >= 0 && target < vocabulary;
  // Before anything of the row is overwritten: the sums below are barriers.
  const Capped at_target = counts ? apply_cap<T>(to_float(x[start + target])) : Capped{0.0f, 0.0f};
  float kept[K > 0 ? K : 1][N] = {};
  RunningSum running = {kLowest, 0.0f};
  if constexpr (K > 0) {
    MLG_UNROLL
    for (int k = 0; k < K; ++k) {
      const int j = (k * block_threads + int(threadIdx.x)) * N;
      if (j >= vocabulary) continue;
      load<N>(x, start + j, kept[k]);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        if (bounded<T>()) {
          const float r = below_cap(kept[k][n]), power = power_below_cap(r);
          running.sum += power;
          kept[k][n] = power * quarter_slope(r);
        } else {
          kept[k][n] = apply_cap<T>(kept[k][n]).value;
          running.maximum = fmaxf(running.maximum, kept[k][n]);
        }
      }
    }
    if (!bounded<T>()) {
      running.maximum = block_max(running.maximum, scratch, block_threads / 32);
      MLG_UNROLL
      for (int k = 0; k < K; ++k) {
        if ((k * block_threads + int(threadIdx.x)) * N >= vocabulary) continue;
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          const float power = exponential<T>(kept[k][n] - running.maximum);
          running.sum += power;
          kept[k][n] = power * cap_slope(kept[k][n]);
        }
      }
    }
  } else {
    for (int j = int(threadIdx.x) * N; j < vocabulary; j += block_threads * N) {
      add_logits<T, N>(x, start + j, running);
    }
  }
  join<T>(running, scratch);
  const float maximum = running.maximum, sum = running.sum;
  if (threadIdx.x == 0) {
    // The difference first: both may be large.
    const float loss = (maximum - at_target.value) + logf(sum);
    token_loss[row] = target < 0 ? 0.0f : counts ? loss : bits_to_float(0x7FC00000u);
  }
  const float factor = (K > 0 && bounded<T>() ? 4.0f : 1.0f) * weight / sum;
  const auto write = [&](int j, float(&d)[N]) {
    if (weight == 0.0f) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) d[n] = 0.0f;
    } else {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) d[n] *= factor;
      if (target >= j && target < j + N) {  // one thread of the block's
        MLG_UNROLL
        for (int n = 0; n < N; ++n) d[n] -= j + n == target ? weight * at_target.slope : 0.0f;
      }
    }
    store<N>(dx, start + j, d);
  };
  if constexpr (K > 0) {
    MLG_UNROLL
    for (int k = 0; k < K; ++k) {
      const int j = (k * block_threads + int(threadIdx.x)) * N;
      if (j < vocabulary) write(j, kept[k]);
    }
  } else {
    for (int j = int(threadIdx.x) * N; j < vocabulary; j += block_threads * N) {
      float d[N];
      load<N>(x, start + j, d);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        const Capped z = apply_cap<T>(d[n]);
        d[n] = exponential<T>(z.value - maximum) * z.slope;
      }
      write(j, d);
    }
  }
}

}  // namespace
