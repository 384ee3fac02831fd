// C++ side of cuda_kernel.h: describing the launches of a CUDA kernel.
//
//   #include <mulligan/cuda_kernel.hpp>
//   namespace {
//   #include "scale.cu.inc"   // made by the build of scale.cu, which it includes; kSource is the file's text
//                             // scale.cu: MLG_KERNEL(scale_by_factor, factor)
//                             // template <typename T> __global__ void scale_by_factor(...)
//   struct Scale {
//     static constexpr const char* name = "my_scale";
//     static constexpr const char* signature = "in x, out y; factor";
//     enum Argument : std::uint32_t { x, y };
//     enum Attribute : std::uint32_t { factor };
//     static void check(const CallChecks& call) { call.compute_dtype(x); }  // as in cpu_kernel.hpp
//     static void plan(CudaCall& call) {
//       call.numbers({factor});
//       dispatch_cuda(call.dtype(x), [&]<typename T>() {
//         call.launch(MLG_INSTANCE(scale_by_factor, T), {blocks}, {256}, x, y, call.size(x));
//       });
//     }
//   };
//   }
//   const mlg_kernel kernels[] = {cuda_kernel<Scale>(kSource)};
#pragma once

#include <mulligan/call_checks.hpp>
#include <mulligan/cuda/instance.hpp>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

namespace cuda_detail {

// Owns what mlg_cuda_plan points to.
struct Plan : mlg_cuda_plan {
  struct Launch {
    std::string function;
    std::vector<mlg_cuda_argument> arguments;
    mlg_emulated_function emulated{};
    emulation::ConstantSet named;  // of the source's constants, by the function
    std::vector<mlg_cuda_constant> constants;
  };
  std::vector<mlg_cuda_launch> c_launches;
  std::deque<Launch> launches;
  std::vector<mlg_cuda_constant> constants;
  std::deque<std::string> names;                    // of those that are attributes
  const emulation::ConstantTable* table = nullptr;  // of the source file
  // The stated functions, launched or dropped, with the constants that they name.
  std::vector<std::pair<std::string, emulation::ConstantSet>> stated;
};

}  // namespace cuda_detail

// One call being planned: its shapes and attributes (CallChecks), and its launches.
class CudaCall : public CallChecks {
 public:
  using CallChecks::CallChecks;

  // Sets a constant of the source, with its declared type, for all launches of the call. The call must set each constant that
  // the launched functions name (MLG_KERNEL) once, and no others.
  template <typename T>
  void constant(const char* name, T value) {
    plan_->constants.push_back({name, static_cast<double>(value), std::is_floating_point_v<T>});
  }
  // Attributes as constants of their names: float ones, and int ones that are 0 or 1.
  void numbers(std::initializer_list<std::uint32_t> attributes) {
    for (const std::uint32_t index : attributes) constant(kept_name(index), attribute(index));
  }
  void flags(std::initializer_list<std::uint32_t> attributes) {
    for (const std::uint32_t index : attributes) constant(kept_name(index), attribute(index) != 0);
  }

  // Arguments of launch().
  CudaArgument tensor(std::uint32_t index) const {
    return CudaArgument(mlg_cuda_argument{MLG_CUDA_TENSOR, index, 0, 0, 0, 0});
  }
  using Launch::tensor;
  // A new part of the workspace: `bytes` bytes, 256-byte aligned.
  CudaArgument workspace(std::size_t bytes) {
    const std::size_t offset = workspace_bytes_;
    workspace_bytes_ += (bytes + 255) / 256 * 256;
    return CudaArgument(mlg_cuda_argument{MLG_CUDA_WORKSPACE, 0, offset, bytes, 0, 0});
  }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Room for `count` floats of workspace.
  CudaArgument floats(std::int64_t count) {
    return workspace(static_cast<std::size_t>(count) * sizeof(float));
  }
  // A null pointer.
  CudaArgument null() const { return CudaArgument(mlg_cuda_argument{MLG_CUDA_WORKSPACE, 0, 0, 0, 0, 0}); }

  // True if elements may be accessed 16 bytes at a time: the extent is a multiple of 16 bytes, and the known addresses of
  // the tensors are aligned. Absent tensors do not count.
  bool allows_packs(std::int64_t extent, std::int64_t pack,
                    std::initializer_list<std::uint32_t> arguments) const {
    bool ok = extent % pack == 0;
    for (const std::uint32_t argument : arguments) {
      ok = ok && reinterpret_cast<std::uintptr_t>(Launch::tensor(argument).data) % 16 == 0;
    }
    return ok;
  }

  // Launches the function of MLG_INSTANCE(function, template arguments...).
  // A launch without threads is dropped.
  template <typename Instance, typename... Arguments>
  requires(Instance::template takes<Arguments...>()) void launch(const Instance& instance,
                                                                 std::array<std::int64_t, 3> grid,
                                                                 std::array<std::uint32_t, 3> block,
                                                                 const Arguments&... arguments) {
    state(instance.text(), Instance::declared());
    if (grid[0] * grid[1] * grid[2] == 0) return;
    if (grid[0] > 0x7FFFFFFF || grid[1] > 65535 || grid[2] > 65535) {
      throw Error(std::string("kernel ") + kernel_name() +
                  " needs a grid beyond CUDA's limits; make the tensors smaller");
    }
    cuda_detail::Plan::Launch& launch = plan_->launches.emplace_back();
    launch.function = instance.text();
    launch.arguments = Instance::pass(arguments...);
    check_dtypes(launch, Instance::tensor_dtypes());
    launch.emulated = Instance::emulated();
    launch.named = Instance::declared().constants;
    mlg_cuda_launch& c = plan_->c_launches.emplace_back();
    for (int axis = 0; axis < 3; ++axis) {
      c.grid[axis] = static_cast<std::uint32_t>(grid[axis]);
      c.block[axis] = block[axis];
    }
  }

  // The same with the grid and blocks of a plan, such as RowPlan.
  template <typename Instance, typename Plan, typename... Arguments>
  requires requires(const Plan& plan) { plan.grid(), plan.block(); }
  void launch(const Instance& instance, const Plan& plan, const Arguments&... arguments) {
    launch(instance, plan.grid(), plan.block(), arguments...);
  }

  // The finished plan; freed by release_plan().
  void* take_plan() {
    cuda_detail::Plan& plan = *plan_;
    complete_constants();
    for (std::size_t i = 0; i < plan.c_launches.size(); ++i) {
      mlg_cuda_launch& c = plan.c_launches[i];
      c.function = plan.launches[i].function.c_str();
      c.arguments = plan.launches[i].arguments.data();
      c.argument_count = static_cast<std::uint32_t>(plan.launches[i].arguments.size());
      plan.launches[i].constants = constants_of(plan.launches[i].named);
      c.constants = plan.launches[i].constants.data();
      c.constant_count = static_cast<std::uint32_t>(plan.launches[i].constants.size());
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
  const char* kept_name(std::uint32_t attribute) {
    return plan_->names.emplace_back(attribute_name(attribute)).c_str();
  }

  void state(const std::string& function, const emulation::Kernel& kernel) {
    if (plan_->table && plan_->table != &kernel.table)
      throw Error(std::string("kernel ") + kernel_name() + " launches functions of two source files");
    plan_->table = &kernel.table;
    plan_->stated.emplace_back(function, kernel.constants);
  }

  // A tensor must have the dtype that its parameter points to.
  void check_dtypes(const cuda_detail::Plan::Launch& launch, const std::vector<mlg_dtype>& dtypes) const {
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      if (launch.arguments[i].kind != MLG_CUDA_TENSOR) continue;
      const std::uint32_t index = launch.arguments[i].index;
      require(Launch::dtype(index) == dtypes[i], index,
              "must be " + (dtypes[i] == MLG_ABSENT ? "no tensor" : dtype_text(dtypes[i])) +
                  " as parameter " + std::to_string(i + 1) + " of " + launch.function);
    }
  }

  // The constants with which a function that names `named` of them is compiled. The others are 1, so that calls that differ
  // only in those share the function.
  std::vector<mlg_cuda_constant> constants_of(emulation::ConstantSet named) const {
    std::vector<mlg_cuda_constant> constants = plan_->constants;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      if ((named >> i & 1) == 0) constants[i].value = 1;
    }
    return constants;
  }

  // Refuses a constant that is missing, unknown, given twice or of another type. Constants that no function of the call
  // names are 1.
  void complete_constants() {
    if (!plan_->table) return;
    const std::string kernel = std::string("kernel ") + kernel_name();
    std::vector<mlg_cuda_constant> complete;
    for (std::uint32_t i = 0; i < plan_->table->count; ++i) {
      const mlg_emulated_constant& entry = plan_->table->entries[i];
      const std::string what = std::string("the constant ") + entry.name;
      const auto namer = std::find_if(plan_->stated.begin(), plan_->stated.end(),
                                      [i](const auto& stated) { return (stated.second >> i & 1) != 0; });
      const bool named = namer != plan_->stated.end();
      mlg_cuda_constant value{entry.name, 1, entry.number != nullptr};
      std::uint32_t given = 0;
      for (const mlg_cuda_constant& constant : plan_->constants) {
        if (std::string_view(entry.name) != constant.name) continue;
        if (++given > 1) throw Error(kernel + " gives " + what + " twice");
        if (!named)
          throw Error(kernel + " gives " + what + ", which none of the functions it launches names");
        if (constant.is_float != value.is_float)
          throw Error(kernel + " gives " + what +
                      (value.is_float ? ", a float, as int" : ", an int, as float"));
        value.value = constant.value;
      }
      if (named && given == 0)
        throw Error(kernel + " gives no value to " + what + ", which its function " + namer->first +
                    " names");
      complete.push_back(value);
    }
    for (const mlg_cuda_constant& constant : plan_->constants) {
      if (std::none_of(complete.begin(), complete.end(), [&](const mlg_cuda_constant& known) {
            return std::string_view(known.name) == constant.name;
          }))
        throw Error("the source of " + kernel + " declares no constant " + constant.name);
    }
    plan_->constants = std::move(complete);
  }

  std::size_t workspace_bytes_ = 0;
  std::unique_ptr<cuda_detail::Plan> plan_ = std::make_unique<cuda_detail::Plan>();
};

// Calls body.template operator()<T>() with T = float or bf16: the dtypes of dispatch_master() in device code.
template <typename Body>
decltype(auto) dispatch_cuda_master(mlg_dtype dtype, Body&& body) {
  if (dtype == MLG_BF16) return std::forward<Body>(body).template operator()<bf16>();
  return std::forward<Body>(body).template operator()<float>();
}

// The same for the compute dtypes: T = float, bf16 or f16.
template <typename Body>
decltype(auto) dispatch_cuda(mlg_dtype dtype, Body&& body) {
  if (dtype == MLG_F16) return std::forward<Body>(body).template operator()<f16>();
  return dispatch_cuda_master(dtype, std::forward<Body>(body));
}

// The table entry of a kernel written as in the example above. Its check(), if it has one, runs before plan().
template <typename Kernel>
constexpr mlg_kernel cuda_kernel(const char* source) {
  const auto prepare = [](const mlg_launch* shapes, mlg_preparation* out) -> mlg_error {
    return guarded([&] {
      CudaCall call(Kernel::name, Kernel::signature, shapes);
      if constexpr (requires { Kernel::check(call); }) Kernel::check(call);
      Kernel::plan(call);
      const std::size_t workspace_bytes = call.workspace_bytes();
      *out = {call.take_plan(), workspace_bytes};
    });
  };
  return {Kernel::name, "cuda", Kernel::signature, prepare, CudaCall::release_plan, nullptr, source};
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
