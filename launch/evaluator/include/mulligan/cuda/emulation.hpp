// Takes the place of include/mulligan/cuda/emulation.hpp in an evaluation, which runs no kernel of CUDA on the CPU: CUDA's names
// as far as a compiler for the CPU needs them to read a kernel's parameters.
#pragma once

#include <mulligan/half.hpp>

#include <mulligan/cuda_kernel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#pragma GCC visibility push(hidden)

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define MLG_UNROLL
#define MLG_CAPACITY(name, maximum) (maximum)

namespace mulligan::emulation {

template <typename... Values>
void fail(Values...) {}

}  // namespace mulligan::emulation

#include <mulligan/cuda/emulated_constants.hpp>

namespace mulligan::emulation {

template <auto function, const Kernel& kernel>
mlg_emulated_function emulated() {
  return {nullptr, nullptr, nullptr, 0};
}

}  // namespace mulligan::emulation

template <typename T>
struct global {
  using Value = std::remove_const_t<T>;
  T* address;
  operator global<const T>() const { return {address}; }
  explicit operator bool() const { return address; }
  global operator+(long long count) const { return {address + count}; }
  T& operator[](long long index) const { return address[index]; }
  template <int count>
  void load(long long, Value*) const {}
  template <int count>
  void store(long long, const Value*) const {}
};

template <typename T, int N>
struct shared_array {
  T data[N];
  T& operator[](int index) { return data[index]; }
};

inline struct { unsigned x, y, z; } threadIdx, blockIdx, blockDim, gridDim;
inline void __syncthreads() {}
inline void __syncwarp(unsigned = 0) {}
template <typename T>
T __shfl_sync(unsigned, T value, int, int = 32) {
  return value;
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int, int = 32) {
  return value;
}
template <typename T>
T __shfl_up_sync(unsigned, T value, unsigned, int = 32) {
  return value;
}
inline unsigned __ballot_sync(unsigned, bool value) {
  return value;
}

inline float bits_to_float(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline std::uint32_t float_to_bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
using std::max;
using std::min;
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline float rsqrtf(float x) {
  return x;
}
inline float __expf(float x) {
  return x;
}
inline float __fdividef(float x, float) {
  return x;
}

#pragma GCC visibility pop
