// What kernel sources include. Under NVRTC this is plain CUDA with a few names; compiled for the CPU
// (by the emulated device) the same names check what a GPU would not (emulation.hpp).
//
//   global<T>               pointer to global memory, a T* on the GPU: p[i], p + i, bool(p)
//   shared_array<T, N>      declared __shared__
//   MLG_CONST_INT(name)     a constant of the run, a literal for NVRTC, given by the host side of the kernel
//   MLG_CONST_FLOAT(name)   (cuda_kernel.hpp)
//   MLG_KERNEL(f, names...) before __global__ f: the constants that f reads, all of them. Each call that
//                           launches f gives them a value; in emulation f reads no other
//   MLG_CAPACITY(name, n)   extent of an array that such a constant counts: the constant itself for NVRTC, n
//                           (what it can be at most) in emulation
//   bf16, f16               storage types; arithmetic is float
#pragma once

#ifdef __CUDACC__

#ifdef __CUDACC_RTC__
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint16_t = unsigned short;
using uint8_t = unsigned char;
using int8_t = signed char;
#else
#include <stdint.h>
#endif

#define MLG_CONST_INT(name) constexpr int name = MLG_VALUE_##name;
#define MLG_CONST_FLOAT(name) constexpr float name = MLG_VALUE_##name;
#define MLG_KERNEL(...)
#define MLG_CAPACITY(name, maximum) (name)
#define MLG_UNROLL _Pragma("unroll")

template <typename T>
using global = T*;

template <typename T, int N>
struct shared_array {
  T data[N];
  __device__ T& operator[](int i) { return data[i]; }
};

__device__ inline float bits_to_float(uint32_t bits) {
  return __uint_as_float(bits);
}
__device__ inline uint32_t float_to_bits(float value) {
  return __float_as_uint(value);
}

#else
#include <mulligan/cuda/emulation.hpp>
#endif

#include <mulligan/cuda/vector.cuh>
#include <mulligan/cuda/warp.cuh>
