// C++ side of cuda_kernel.h: describing the launches of a CUDA kernel.
//
//   #include <mulligan/cuda_kernel.hpp>
//   namespace {
//   #include "scale.cu"                     // template <typename T> __global__ void scale_by_factor(...)
//   constexpr char source[] =
//   #include "scale.cu.inc"                 // the same text as a string literal, made by the build
//       ;
//   struct Scale {
//     static constexpr const char* name = "my_scale";
//     static constexpr const char* signature = "in x, out y; factor";
//     static constexpr const char* source = ::source;
//     static void plan(CudaCall& call) {
//       call.compute_dtype(0);              // checks as in cpu_kernel.hpp
//       call.constant("factor", call.attribute(0));
//       dispatch_cuda(call.dtype(0), [&]<typename T>() {
//         call.launch<&scale_by_factor<T>>("scale_by_factor", {device_type<T>}, {blocks}, {256},
//                                          call.tensor(0), call.tensor(1), call.size(0));
//       });
//     }
//   };
//   }
//   const mlg_kernel kernels[] = {cuda_kernel<Scale>()};
#pragma once

#include <mulligan/call_checks.hpp>
#include <mulligan/cuda/device.cuh>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// How device code calls a type.
template <typename T>
constexpr const char* device_type = "";
template <>
inline constexpr const char* device_type<float> = "float";
template <>
inline constexpr const char* device_type<double> = "double";
template <>
inline constexpr const char* device_type<bf16> = "bf16";
template <>
inline constexpr const char* device_type<int> = "int";

// One parameter of a __global__ function.
struct CudaArgument : mlg_cuda_argument {
  CudaArgument(int value) : mlg_cuda_argument{MLG_CUDA_INT, 0, 0, 0, value, 0} {}
  CudaArgument(long value) : mlg_cuda_argument{MLG_CUDA_LONG, 0, 0, 0, value, 0} {}
  CudaArgument(long long value) : mlg_cuda_argument{MLG_CUDA_LONG, 0, 0, 0, value, 0} {}
  CudaArgument(float value) : mlg_cuda_argument{MLG_CUDA_FLOAT, 0, 0, 0, 0, value} {}
  explicit CudaArgument(const mlg_cuda_argument& argument) : mlg_cuda_argument(argument) {}
};

namespace cuda_detail {

template <typename T>
struct Parameter;
template <typename T>
struct Parameter<global<T>> {
  static constexpr std::array kinds{MLG_CUDA_TENSOR, MLG_CUDA_WORKSPACE};
  static global<T> from(const mlg_emulated_argument& argument) {
    if (!argument.region) return {};
    return {reinterpret_cast<T*>(argument.region->begin), argument.region};
  }
};
template <>
struct Parameter<int> {
  static constexpr std::array kinds{MLG_CUDA_INT};
  static int from(const mlg_emulated_argument& argument) { return static_cast<int>(argument.integer); }
};
template <>
struct Parameter<long long> {
  static constexpr std::array kinds{MLG_CUDA_LONG};
  static long long from(const mlg_emulated_argument& argument) { return argument.integer; }
};
template <>
struct Parameter<float> {
  static constexpr std::array kinds{MLG_CUDA_FLOAT};
  static float from(const mlg_emulated_argument& argument) { return static_cast<float>(argument.number); }
};

template <auto kernel>
struct Function;
template <typename... Parameters, void (*kernel)(Parameters...)>
struct Function<kernel> {
  static constexpr std::size_t count = sizeof...(Parameters);
  static void body(const mlg_emulated_argument* arguments) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      kernel(Parameter<Parameters>::from(arguments[i])...);
    }
    (std::index_sequence_for<Parameters...>());
  }
  static bool accepts(const mlg_cuda_argument* arguments) {
    bool ok = true;
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      const auto takes = [](const auto& kinds, std::int32_t kind) {
        return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
      };
      ((ok = ok && takes(Parameter<Parameters>::kinds, arguments[i].kind)), ...);
    }
    (std::index_sequence_for<Parameters...>());
    return ok;
  }
};

// What mlg_cuda_plan points into.
struct Plan : mlg_cuda_plan {
  struct Launch {
    std::string function;
    std::vector<mlg_cuda_argument> arguments;
    mlg_emulated_function emulated{};
  };
  std::vector<mlg_cuda_launch> c_launches;
  std::deque<Launch> launches;
  std::vector<mlg_cuda_constant> constants;
};

}  // namespace cuda_detail

// One call being planned: its shapes and attributes (CallChecks) and what to launch for it.
class CudaCall : public CallChecks {
 public:
  using CallChecks::CallChecks;

  // A constant that the source declares; holds for all launches of the call.
  template <typename T>
  void constant(const char* name, T value) {
    plan_->constants.push_back({name, static_cast<double>(value), std::is_floating_point_v<T>});
  }

  // Arguments of launch().
  CudaArgument tensor(std::uint32_t index) const {
    return CudaArgument(mlg_cuda_argument{MLG_CUDA_TENSOR, index, 0, 0, 0, 0});
  }
  using Launch::tensor;
  // `bytes` bytes of workspace, 256-byte aligned, apart from what was handed out before.
  CudaArgument workspace(std::size_t bytes) {
    const std::size_t offset = workspace_bytes();
    CallChecks::workspace(offset + (bytes + 255) / 256 * 256);
    return CudaArgument(mlg_cuda_argument{MLG_CUDA_WORKSPACE, 0, offset, bytes, 0, 0});
  }
  // Room for `count` floats of workspace.
  CudaArgument floats(std::int64_t count) {
    return workspace(static_cast<std::size_t>(count) * sizeof(float));
  }
  // A pointer that is null.
  CudaArgument null() const { return CudaArgument(mlg_cuda_argument{MLG_CUDA_WORKSPACE, 0, 0, 0, 0, 0}); }

  // True when elements may be accessed 16 bytes at a time: the extent is a whole number of them, and the
  // tensors' addresses, where known already, are aligned. Absent tensors do not count.
  bool allows_packs(std::int64_t extent, std::int64_t pack,
                    std::initializer_list<std::uint32_t> arguments) const {
    bool ok = extent % pack == 0;
    for (const std::uint32_t argument : arguments) {
      ok = ok && reinterpret_cast<std::uintptr_t>(Launch::tensor(argument).data) % 16 == 0;
    }
    return ok;
  }

  // Launches function<template_arguments...>; `kernel` is that instance. A launch without threads is dropped.
  template <auto kernel, typename... Arguments>
  void launch(const char* function, const std::vector<std::string>& template_arguments,
              std::array<std::int64_t, 3> grid, std::array<std::uint32_t, 3> block, Arguments... arguments) {
    using Function = cuda_detail::Function<kernel>;
    static_assert(Function::count == sizeof...(Arguments),
                  "as many arguments as the function has parameters");
    if (grid[0] * grid[1] * grid[2] == 0) return;
    if (grid[0] > 0x7FFFFFFF || grid[1] > 65535 || grid[2] > 65535) {
      throw Error(std::string("kernel ") + kernel_name() +
                  " needs a grid beyond CUDA's limits; make the tensors smaller");
    }
    cuda_detail::Plan::Launch& launch = plan_->launches.emplace_back();
    launch.function = function;
    std::string separator = "<";
    for (const std::string& argument : template_arguments) {
      launch.function += std::exchange(separator, ", ") + argument;
    }
    if (template_arguments.size() > 0) launch.function += ">";
    launch.arguments = {CudaArgument(arguments)...};
    if (!Function::accepts(launch.arguments.data())) {
      throw Error(launch.function + " is launched with an argument of another type than its parameter");
    }
    launch.emulated = {&Function::body, &emulation::emulator, mlg_constants.entries, mlg_constants.count};
    mlg_cuda_launch& c = plan_->c_launches.emplace_back();
    for (int axis = 0; axis < 3; ++axis) {
      c.grid[axis] = static_cast<std::uint32_t>(grid[axis]);
      c.block[axis] = block[axis];
    }
  }

  // The finished plan; freed by release_plan().
  void* take_plan() {
    cuda_detail::Plan& plan = *plan_;
    declare_missing_constants();
    for (std::size_t i = 0; i < plan.c_launches.size(); ++i) {
      mlg_cuda_launch& c = plan.c_launches[i];
      c.function = plan.launches[i].function.c_str();
      c.arguments = plan.launches[i].arguments.data();
      c.argument_count = static_cast<std::uint32_t>(plan.launches[i].arguments.size());
      c.constants = plan.constants.data();
      c.constant_count = static_cast<std::uint32_t>(plan.constants.size());
      c.emulated = &plan.launches[i].emulated;
    }
    static_cast<mlg_cuda_plan&>(plan) = {plan.c_launches.data(),
                                         static_cast<std::uint32_t>(plan.c_launches.size())};
    return static_cast<mlg_cuda_plan*>(plan_.release());
  }
  static void release_plan(void* plan) {
    delete static_cast<cuda_detail::Plan*>(static_cast<mlg_cuda_plan*>(plan));
  }

 private:
  // A source file may declare constants for its other kernels: those are 1. One that it does not declare is a
  // mistake.
  void declare_missing_constants() {
    if (plan_->launches.empty()) return;
    const mlg_emulated_function& emulated = plan_->launches.front().emulated;
    const auto declared = [&](const mlg_cuda_constant& constant) {
      return std::any_of(emulated.constants, emulated.constants + emulated.constant_count,
                         [&](const auto& entry) { return std::string_view(entry.name) == constant.name; });
    };
    for (const mlg_cuda_constant& constant : plan_->constants) {
      if (!declared(constant))
        throw Error(std::string("the source of ") + kernel_name() + " declares no constant " + constant.name);
    }
    for (std::uint32_t i = 0; i < emulated.constant_count; ++i) {
      const mlg_emulated_constant& entry = emulated.constants[i];
      const bool given =
          std::any_of(plan_->constants.begin(), plan_->constants.end(),
                      [&](const auto& constant) { return std::string_view(entry.name) == constant.name; });
      if (!given) plan_->constants.push_back({entry.name, 1, entry.number != nullptr});
    }
  }

  std::unique_ptr<cuda_detail::Plan> plan_ = std::make_unique<cuda_detail::Plan>();
};

// Calls body.template operator()<T>() with T = float or bf16, as device code calls the compute dtypes.
template <typename Body>
decltype(auto) dispatch_cuda(mlg_dtype dtype, Body&& body) {
  if (dtype == MLG_BF16) return std::forward<Body>(body).template operator()<bf16>();
  return std::forward<Body>(body).template operator()<float>();
}

// The table entry of a kernel written as in the example above.
template <typename Kernel>
constexpr mlg_kernel cuda_kernel() {
  const auto prepare = [](const mlg_launch* shapes, mlg_preparation* out) -> mlg_error {
    return guarded([&] {
      CudaCall call(Kernel::name, Kernel::signature, shapes);
      Kernel::plan(call);
      const std::size_t workspace_bytes = call.workspace_bytes();
      *out = {call.take_plan(), workspace_bytes};
    });
  };
  return {Kernel::name,           "cuda",  Kernel::signature, prepare,
          CudaCall::release_plan, nullptr, Kernel::source,    Kernel::name};
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
