// Sums and maxima over a warp or a block, in a fixed order: results depend on nothing but the values.
#pragma once

constexpr unsigned kWholeWarp = 0xFFFFFFFFu;

template <typename T>
__device__ inline T warp_sum(T value) {
  MLG_UNROLL
  for (int lanes = 16; lanes > 0; lanes >>= 1) value += __shfl_xor_sync(kWholeWarp, value, lanes);
  return value;
}

__device__ inline float warp_max(float value) {
  MLG_UNROLL
  for (int lanes = 16; lanes > 0; lanes >>= 1)
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, lanes));
  return value;
}

// The sum over all threads of a block of `warps` whole warps, in every thread. `scratch` may be used
// again after it.
template <typename T>
__device__ inline T block_sum(T value, shared_array<T, 32>& scratch, int warps) {
  value = warp_sum(value);
  if (warps == 1) return value;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  T part = 0;
  if (lane < warps) part = scratch[lane];
  value = warp_sum(part);
  __syncthreads();
  return value;
}

// The maximum, in the same way.
__device__ inline float block_max(float value, shared_array<float, 32>& scratch, int warps) {
  value = warp_max(value);
  if (warps == 1) return value;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  float part = bits_to_float(0xFF800000u);
  if (lane < warps) part = scratch[lane];
  value = warp_max(part);
  __syncthreads();
  return value;
}
