// CUDA's names for kernels compiled for the CPU. Global and shared memory are reached through types
// that check every access: bounds, alignment, reads of memory that was never written, and reads or writes
// that race with another thread since the last barrier. Included by device.cuh;
// contract of the emulator: emulator.h.
#pragma once

#include <mulligan/half.hpp>

#include <mulligan/cuda/emulator.h>
#include <mulligan/cuda_kernel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(hidden)

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
// Blocks run one after another, so one copy serves all; shared_array notices what an earlier block left.
#define __shared__ static
#define MLG_UNROLL
#define MLG_CAPACITY(name, maximum) (maximum)
#define threadIdx (::mulligan::emulation::emulator->thread_index)
#define blockIdx (::mulligan::emulation::emulator->block_index)
#define blockDim (::mulligan::emulation::emulator->block_dim)
#define gridDim (::mulligan::emulation::emulator->grid_dim)

namespace mulligan::emulation {

// Set by the emulated device for the time of a launch.
inline mlg_emulator* emulator = nullptr;

template <typename... Values>
[[noreturn, gnu::noinline, gnu::cold]] void fail(const char* format, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  emulator->fail(text);
  __builtin_unreachable();
}

// Checks an access of `bytes` bytes at `address`, which must be a multiple of `bytes`; a write
// makes them known.
inline void access(const mlg_emulated_region* region, const void* address, std::size_t bytes, bool write) {
  const char* begin = static_cast<const char*>(address);
  const char* verb = write ? "writes" : "reads";
  if (!region) [[unlikely]]
    fail("%s through a null pointer", verb);
  const auto offset = static_cast<long long>(begin - region->begin);
  if (begin < region->begin || begin + bytes > region->end) [[unlikely]] {
    fail("%s %zu bytes at byte %lld of %s, which has %lld bytes", verb, bytes, offset, region->name,
         static_cast<long long>(region->end - region->begin));
  }
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) [[unlikely]]
    fail("%s %zu bytes at byte %lld of %s, which is not aligned to them", verb, bytes, offset, region->name);
  if (!(write ? region->writable : region->readable)) [[unlikely]]
    fail("%s %s, which the kernel's signature does not allow", verb, region->name);
  unsigned char* known = region->known + offset;
  if (write) {
    std::memset(known, 1, bytes);
  } else if (std::memchr(known, 0, bytes)) [[unlikely]] {
    fail("reads %zu bytes at byte %lld of %s, which nothing has written", bytes, offset, region->name);
  }
}

}  // namespace mulligan::emulation

#include <mulligan/cuda/emulated_constants.hpp>

// A T* to global memory that knows its region.
template <typename T>
class global {
 public:
  using Value = std::remove_const_t<T>;

  // What p[i] is when the element may be written: reads and writes are told apart.
  class Element {
   public:
    Element(T* address, const mlg_emulated_region* region) : address_(address), region_(region) {}
    operator Value() const {
      mulligan::emulation::access(region_, address_, sizeof(T), false);
      return *address_;
    }
    const Element& operator=(Value value) const {
      mulligan::emulation::access(region_, address_, sizeof(T), true);
      *const_cast<Value*>(address_) = value;
      return *this;
    }
    const Element& operator=(const Element& other) const { return *this = static_cast<Value>(other); }
    const Element& operator+=(Value value) const { return *this = static_cast<Value>(*this) + value; }

   private:
    T* address_;
    const mlg_emulated_region* region_;
  };

  global() = default;
  global(T* address, const mlg_emulated_region* region) : address_(address), region_(region) {}
  operator global<const T>() const { return {address_, region_}; }
  explicit operator bool() const { return address_ != nullptr; }
  global operator+(long long count) const { return {address_ + count, region_}; }
  auto operator[](long long index) const {
    if constexpr (std::is_const_v<T>) {
      mulligan::emulation::access(region_, address_ + index, sizeof(T), false);
      return address_[index];
    } else {
      return Element(address_ + index, region_);
    }
  }
  // `count` elements at once, aligned to their size.
  template <int count>
  void load(long long index, Value* out) const {
    mulligan::emulation::access(region_, address_ + index, count * sizeof(T), false);
    std::memcpy(out, address_ + index, count * sizeof(T));
  }
  template <int count>
  void store(long long index, const Value* values) const {
    mulligan::emulation::access(region_, address_ + index, count * sizeof(T), true);
    std::memcpy(const_cast<Value*>(address_ + index), values, count * sizeof(T));
  }

 private:
  T* address_ = nullptr;
  const mlg_emulated_region* region_ = nullptr;
};

namespace mulligan::emulation {

// What a parameter of a __global__ function is given.
template <typename T>
struct Given {
  static T from(const mlg_emulated_argument& argument) { return static_cast<T>(argument.integer); }
};
template <>
struct Given<float> {
  static float from(const mlg_emulated_argument& argument) { return static_cast<float>(argument.number); }
};
template <typename T>
struct Given<global<T>> {
  static global<T> from(const mlg_emulated_argument& argument) {
    if (!argument.region) return {};
    return {reinterpret_cast<T*>(argument.region->begin), argument.region};
  }
};

template <auto function, const Kernel& kernel>
struct Body;
template <typename... Parameters, void (*function)(Parameters...), const Kernel& kernel>
struct Body<function, kernel> {
  static void run(const mlg_emulated_argument* arguments) {
    readable_constants = kernel.constants;
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      function(Given<Parameters>::from(arguments[i])...);
    }
    (std::index_sequence_for<Parameters...>());
  }
};

template <auto function, const Kernel& kernel>
mlg_emulated_function emulated() {
  return {&Body<function, kernel>::run, &emulator, kernel.table.entries, kernel.table.count};
}

}  // namespace mulligan::emulation

#include <mulligan/cuda/emulated_shared.hpp>
#include <mulligan/cuda/emulated_threads.hpp>

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
  return 1.0f / std::sqrt(x);
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}

#pragma GCC visibility pop
