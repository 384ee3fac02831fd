// A __global__ function stated once: MLG_INSTANCE(f, T, N) is f<T, N> of a source that declares MLG_KERNEL(f, ...). From it
// follow the function that the emulated device runs, the text that NVRTC compiles, the arguments of a launch, and the constants
// of the call. Part of cuda_kernel.hpp.
#pragma once

#include <mulligan/cuda/device.cuh>
#include <mulligan/kernel.hpp>

#include <concepts>
#include <initializer_list>
#include <string>
#include <type_traits>

#define MLG_INSTANCE(function, ...)                                                       \
  (::mulligan::sdk::Instance<&function __VA_OPT__(<__VA_ARGS__>), mlg_kernel_##function>( \
      #function, {__VA_OPT__(MLG_TEXTS_1(__VA_ARGS__))}))
// The texts of up to six template arguments.
#define MLG_TEXT(argument) ::mulligan::sdk::cuda_detail::template_argument<argument>()
#define MLG_TEXTS_1(argument, ...) MLG_TEXT(argument) __VA_OPT__(, MLG_TEXTS_2(__VA_ARGS__))
#define MLG_TEXTS_2(argument, ...) MLG_TEXT(argument) __VA_OPT__(, MLG_TEXTS_3(__VA_ARGS__))
#define MLG_TEXTS_3(argument, ...) MLG_TEXT(argument) __VA_OPT__(, MLG_TEXTS_4(__VA_ARGS__))
#define MLG_TEXTS_4(argument, ...) MLG_TEXT(argument) __VA_OPT__(, MLG_TEXTS_5(__VA_ARGS__))
#define MLG_TEXTS_5(argument, ...) MLG_TEXT(argument) __VA_OPT__(, MLG_TEXTS_6(__VA_ARGS__))
#define MLG_TEXTS_6(argument) MLG_TEXT(argument)

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// How device code calls a type, and the dtype of its tensors. Types of a plugin may be added.
template <typename T>
struct DeviceType;
#define MLG_DEVICE_TYPE(type, mlg_dtype_value)          \
  template <>                                           \
  struct DeviceType<type> {                             \
    static constexpr const char* name = #type;          \
    static constexpr mlg_dtype dtype = mlg_dtype_value; \
  };
MLG_DEVICE_TYPE(float, MLG_F32)
MLG_DEVICE_TYPE(double, MLG_F64)
MLG_DEVICE_TYPE(bf16, MLG_BF16)
MLG_DEVICE_TYPE(f16, MLG_F16)
MLG_DEVICE_TYPE(int, MLG_I32)
MLG_DEVICE_TYPE(long, MLG_I64)
MLG_DEVICE_TYPE(long long, MLG_I64)
MLG_DEVICE_TYPE(uint16_t, MLG_U16)
MLG_DEVICE_TYPE(uint8_t, MLG_U8)
MLG_DEVICE_TYPE(int8_t, MLG_I8)
#undef MLG_DEVICE_TYPE

// An argument that is a pointer: a tensor of the call, a part of its workspace, or null (CudaCall).
struct CudaArgument : mlg_cuda_argument {
  explicit CudaArgument(const mlg_cuda_argument& argument) : mlg_cuda_argument(argument) {}
};

namespace cuda_detail {

template <typename T>
std::string template_argument() {
  return DeviceType<T>::name;
}
template <auto value>
std::string template_argument() {
  static_assert(std::is_integral_v<decltype(value)>, "template arguments are types and integers");
  if constexpr (std::is_same_v<decltype(value), bool>) return value ? "true" : "false";
  return std::to_string(static_cast<long long>(value));
}

// Whether a parameter of a __global__ function takes an argument of this type from a launch.
template <typename Parameter, typename Argument>
constexpr bool takes = false;
template <>
inline constexpr bool takes<int, int> = true;
template <>
inline constexpr bool takes<float, float> = true;
template <typename Argument>
constexpr bool takes<long long, Argument> = std::same_as<Argument, long> || std::same_as<Argument, long long>;
template <typename T, typename Argument>
constexpr bool takes<global<T>, Argument> = std::same_as<Argument, CudaArgument> || std::is_enum_v<Argument>;

inline mlg_cuda_argument passed(const CudaArgument& argument) {
  return argument;
}
inline mlg_cuda_argument passed(float value) {
  return {MLG_CUDA_FLOAT, 0, 0, 0, 0, value};
}
template <std::integral T>
mlg_cuda_argument passed(T value) {
  return {sizeof(T) == sizeof(int) ? MLG_CUDA_INT : MLG_CUDA_LONG, 0, 0, 0, value, 0};
}
template <typename T>
requires std::is_enum_v<T> mlg_cuda_argument passed(T argument) {
  return {MLG_CUDA_TENSOR, static_cast<std::uint32_t>(argument), 0, 0, 0, 0};
}

// The dtype of the tensors that a parameter may point into; MLG_ABSENT: of none.
template <typename T>
constexpr mlg_dtype tensor_dtype = MLG_ABSENT;
template <typename T>
requires requires {
  DeviceType<std::remove_const_t<T>>::dtype;
}
constexpr mlg_dtype tensor_dtype<global<T>> = DeviceType<std::remove_const_t<T>>::dtype;

}  // namespace cuda_detail

template <auto function, const emulation::Kernel& kernel>
class Instance;
template <typename... Parameters, void (*function)(Parameters...), const emulation::Kernel& kernel>
class Instance<function, kernel> {
 public:
  Instance(const char* name, std::initializer_list<std::string> template_arguments) : text_(name) {
    std::string separator = "<";
    for (const std::string& argument : template_arguments) text_ += std::exchange(separator, ", ") + argument;
    if (template_arguments.size() > 0) text_ += ">";
  }

  // Whether a launch may give arguments of these types: as many as the function has parameters, an int for
  // int, std::int64_t for long long, float for float, a CudaArgument or an enumerator of a tensor for a pointer.
  template <typename... Arguments>
  static constexpr bool takes() {
    if constexpr (sizeof...(Arguments) == sizeof...(Parameters)) {
      return (cuda_detail::takes<Parameters, Arguments> && ...);
    } else {
      return false;
    }
  }
  template <typename... Arguments>
  static std::vector<mlg_cuda_argument> pass(const Arguments&... arguments) {
    return {cuda_detail::passed(arguments)...};
  }
  static std::vector<mlg_dtype> tensor_dtypes() { return {cuda_detail::tensor_dtype<Parameters>...}; }

  const std::string& text() const { return text_; }  // "rms_norm_fwd<float, 4>", for NVRTC
  static const emulation::Kernel& declared() { return kernel; }
  static mlg_emulated_function emulated() { return emulation::emulated<function, kernel>(); }

 private:
  std::string text_;
};

}  // namespace mulligan::sdk

#pragma GCC visibility pop
