// bf16 and f16, and memory accesses of several elements at once. Part of device.cuh.
#pragma once

// Stored bf16 and fp16; arithmetic is float.
struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};

__device__ inline float to_float(float value) {
  return value;
}
__device__ inline float to_float(bf16 value) {
  return bits_to_float(uint32_t(value.bits) << 16);
}
__device__ inline float to_float(f16 value) {
#ifdef __CUDA_ARCH__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  return mulligan::sdk::half_value(value.bits);
#endif
}

// `value` rounded to nearest even in T.
template <typename T>
struct Narrow;
template <>
struct Narrow<float> {
  __device__ static float from(float value) { return value; }
};
template <>
struct Narrow<bf16> {
  __device__ static bf16 from(float value) {
    bf16 result;
#ifdef __CUDA_ARCH__
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
#else
    // The same without the instruction; NaNs keep more of their bits.
    const uint32_t word = float_to_bits(value);
    const uint32_t rounded = word + 0x7FFFu + ((word >> 16) & 1u);
    result.bits = uint16_t((value != value ? (word | 0x400000u) : rounded) >> 16);
#endif
    return result;
  }
};

template <>
struct Narrow<f16> {
  __device__ static f16 from(float value) {
    f16 result;
#ifdef __CUDA_ARCH__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
#else
    result.bits = mulligan::sdk::half_bits(value);
#endif
    return result;
  }
};

// Elements of T in one 16-byte access.
template <typename T>
constexpr int kPack = 16 / int(sizeof(T));

#ifdef __CUDACC__
template <typename P>
struct ElementOf;
template <typename T>
struct ElementOf<T*> {
  using Type = T;
};
template <typename T>
struct ElementOf<const T*> {
  using Type = T;
};
template <typename P>
using Element = typename ElementOf<P>::Type;

template <typename T, int N>
struct alignas(N * sizeof(T)) Pack {
  T v[N];
};
template <int N, typename T>
__device__ inline void copy_in(const T* p, long long i, T* out) {
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(p + i);
#pragma unroll
  for (int n = 0; n < N; ++n) out[n] = pack.v[n];
}
template <int N, typename T>
__device__ inline void copy_out(T* p, long long i, const T* values) {
  Pack<T, N> pack;
#pragma unroll
  for (int n = 0; n < N; ++n) pack.v[n] = values[n];
  if constexpr (sizeof pack == 16 && sizeof(T) == 2) {
    // Left to itself the compiler cuts some of these stores into four of 4 bytes.
    const uint32_t* words = reinterpret_cast<const uint32_t*>(&pack);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p + i)),
                 "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
  } else {
    *reinterpret_cast<Pack<T, N>*>(p + i) = pack;
  }
}
#else
template <typename P>
using Element = typename P::Value;
template <int N, typename T>
void copy_in(global<T> p, long long i, std::remove_const_t<T>* out) {
  p.template load<N>(i, out);
}
template <int N, typename T>
void copy_out(global<T> p, long long i, const T* values) {
  p.template store<N>(i, values);
}
#endif

// p[i..i+N) as stored, in accesses of at most 16 bytes. i must be a multiple of N.
template <int N, typename P>
__device__ inline void load_raw(P p, long long i, Element<P> (&out)[N]) {
  constexpr int kStep = N < kPack<Element<P>> ? N : kPack<Element<P>>;
  MLG_UNROLL
  for (int n = 0; n < N; n += kStep) copy_in<kStep>(p, i + n, out + n);
}
template <int N, typename P>
__device__ inline void store_raw(P p, long long i, const Element<P> (&values)[N]) {
  constexpr int kStep = N < kPack<Element<P>> ? N : kPack<Element<P>>;
  MLG_UNROLL
  for (int n = 0; n < N; n += kStep) copy_out<kStep>(p, i + n, values + n);
}

// p[i..i+N) as floats. P: global<T> or global<const T> of float, bf16 or f16.
template <int N, typename P>
__device__ inline void load(P p, long long i, float (&out)[N]) {
  Element<P> values[N];
  load_raw<N>(p, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) out[n] = to_float(values[n]);
}

// p[i..i+N) = values, rounded; added to what is there where `accumulate`.
template <int N, typename P>
__device__ inline void store(P p, long long i, const float (&values)[N], bool accumulate = false) {
  Element<P> stored[N];
  if (accumulate) {
    load_raw<N>(p, i, stored);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) stored[n] = Narrow<Element<P>>::from(to_float(stored[n]) + values[n]);
  } else {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) stored[n] = Narrow<Element<P>>::from(values[n]);
  }
  store_raw<N>(p, i, stored);
}
