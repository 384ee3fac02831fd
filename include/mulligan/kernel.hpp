// C++ side of kernel.h for authors of CPU kernels: typed access to arguments, bf16 and fp16, parallel loops.
#pragma once

#include <mulligan/kernel.h>
#include <mulligan/half.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace mulligan::sdk {

// bfloat16 storage: the upper half of a float. Arithmetic is done in float.
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  // Rounds to nearest, ties to even; NaN stays NaN.
  explicit bfloat16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = word + 0x7FFFu + ((word >> 16) & 1u);
    bits = static_cast<std::uint16_t>((value != value ? (word | 0x400000u) : rounded) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};
static_assert(sizeof(bfloat16) == 2);

// IEEE 754 binary16 storage (half.hpp). Arithmetic is done in float.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  // Rounds to nearest, ties to even; 65520 and above become infinite, NaN stays NaN.
  explicit float16(float value) : bits(half_bits(value)) {}
  operator float() const { return half_value(bits); }
};
static_assert(sizeof(float16) == 2);

// One call of a CPU kernel. Indices follow the kernel's signature.
class Launch {
 public:
  explicit Launch(const mlg_launch* launch) : launch_(*launch) {}

  const mlg_tensor& tensor(std::uint32_t index) const { return launch_.arguments[index]; }
  bool has(std::uint32_t index) const { return tensor(index).dtype != MLG_ABSENT; }
  mlg_dtype dtype(std::uint32_t index) const { return static_cast<mlg_dtype>(tensor(index).dtype); }
  std::int64_t dim(std::uint32_t index, int axis) const { return tensor(index).shape[axis]; }
  std::int64_t size(std::uint32_t index) const {
    const mlg_tensor& t = tensor(index);
    return t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3];
  }
  // Typed pointer; null where an optional argument is absent. The dtype was checked by prepare().
  template <typename T>
  T* data(std::uint32_t index) const {
    return static_cast<T*>(has(index) ? tensor(index).data : nullptr);
  }
  double attribute(std::uint32_t index) const { return launch_.attributes[index]; }
  float number(std::uint32_t index) const { return static_cast<float>(attribute(index)); }
  bool flag(std::uint32_t index) const { return attribute(index) != 0; }
  template <typename T>
  T* workspace() const {
    return static_cast<T*>(launch_.workspace);
  }
  template <typename T>
  T* state() const {
    return static_cast<T*>(launch_.state);
  }

  // Runs body(begin, end) over pieces of [0, count); pieces may run at once (contract in kernel.h).
  template <typename Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) const {
    using Plain = std::remove_reference_t<Body>;
    launch_.parallel_for(
        count, grain,
        [](void* context, std::int64_t begin, std::int64_t end) {
          (*static_cast<Plain*>(context))(begin, end);
        },
        const_cast<std::remove_const_t<Plain>*>(&body));
  }
  // The same as body(index), one after the other within a piece.
  template <typename Body>
  void for_each(std::int64_t count, std::int64_t grain, Body&& body) const {
    parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t index = begin; index < end; ++index) body(index);
    });
  }

 private:
  const mlg_launch& launch_;
};

// Calls body.template operator()<T>() with T = float or bfloat16, what weights and states are kept in.
template <typename Body>
decltype(auto) dispatch_master(mlg_dtype dtype, Body&& body) {
  if (dtype == MLG_BF16) return std::forward<Body>(body).template operator()<bfloat16>();
  return std::forward<Body>(body).template operator()<float>();
}

// The same for the compute dtypes: T = float, bfloat16 or float16.
template <typename Body>
decltype(auto) dispatch_compute(mlg_dtype dtype, Body&& body) {
  if (dtype == MLG_F16) return std::forward<Body>(body).template operator()<float16>();
  return dispatch_master(dtype, std::forward<Body>(body));
}

}  // namespace mulligan::sdk
