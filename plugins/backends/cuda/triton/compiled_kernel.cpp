#include "plugins/backends/cuda/triton/compiled_kernel.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "plugins/backends/cuda/triton/compiled_file.h"

namespace mulligan::cuda::triton {
namespace {

std::string read_code(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw std::runtime_error(file + ": the compiled kernel cannot be read (" + std::strerror(errno) + ")");
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

CompiledKernel::CompiledKernel(const std::string& file, const std::string& kernel,
                               const std::string& signature, const std::string& architecture)
    : file_(file), kernel_(kernel), signature_(backends::parse_signature(kernel, signature)) {
  const std::filesystem::path path(file);
  if (path.extension() != ".ptx") throw std::runtime_error(file + ": a compiled kernel is a .ptx file");
  code_ = read_code(file);
  description_ = read_description(std::filesystem::path(path).replace_extension(".json").string());
  if (description_.kernel != kernel) {
    throw std::runtime_error(description_.file + " describes the kernel " + description_.kernel +
                             ", but it is to replace " + kernel);
  }
  bindings_ = bind_parameters(description_, signature_);
  for (const std::string& axis : description_.grid) grid_.emplace_back(axis, signature_, description_.file);
  for (const auto& [name, value] : description_.when)
    when_.push_back({CallNumber(name, signature_, description_.file), value});
  const PtxEntry entry = read_ptx_entry(code_, description_.entry, file);
  check_entry(entry, description_, file);
  if (architecture.empty() || ptx_runs_on(entry.target, architecture)) return;
  throw std::runtime_error(file + " is compiled for " + entry.target + ", but the device is " + architecture +
                           "; compile it with --architecture " +
                           std::to_string(std::atoi(architecture.c_str() + 3)));
}

std::runtime_error CompiledKernel::misfit(const std::string& what) const {
  return std::runtime_error(file_ + " does not fit this call of " + kernel_ + ": " + what);
}

void CompiledKernel::check_call(const mlg_launch& call) const {
  for (std::size_t i = 0; i < signature_.arguments.size(); ++i) {
    const bool taken = std::any_of(bindings_.begin(), bindings_.end(), [&](const Binding& binding) {
      return !binding.number && binding.index == i;
    });
    if (!taken && call.arguments[i].dtype != MLG_ABSENT) {
      throw misfit("it has no parameter for " + signature_.arguments[i].name + ", which this call passes");
    }
  }
  for (const Condition& condition : when_) {
    const double actual = condition.number.of(call);
    if (actual == condition.value) continue;
    throw misfit("it was compiled for " + condition.number.text() + " = " + std::to_string(condition.value) +
                 ", but here that is " + std::to_string(actual));
  }
}

mlg_cuda_argument CompiledKernel::value(const Binding& binding, const mlg_launch& call) const {
  mlg_cuda_argument argument{};
  const auto require_divisible = [&](std::int64_t number, const char* what) {
    if (number % binding.divisible_by == 0) return;
    throw misfit(binding.name + " was promised to be " + what + " " + std::to_string(binding.divisible_by) +
                 ", but here it is " + std::to_string(number) + "; compile it without that hint");
  };
  if (!binding.number) {
    const mlg_tensor& tensor = call.arguments[binding.index];
    if (tensor.dtype != MLG_ABSENT && pointer_type(tensor.dtype) != binding.type) {
      throw misfit("it takes " + binding.name + " as " + binding.type + ", but here that is " +
                   pointer_type(tensor.dtype) + "; compile it for that type");
    }
    require_divisible(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data)),
                      "an address that is a multiple of");
    argument.kind = MLG_CUDA_TENSOR;
    argument.index = binding.index;
    return argument;
  }
  const double number = binding.number->of(call);
  if (binding.type == "fp32") {
    argument.kind = MLG_CUDA_FLOAT;
    argument.number = number;
    return argument;
  }
  const double most = binding.type == "i32" ? std::numeric_limits<std::int32_t>::max() : 0x1p53;
  if (number != std::floor(number) || std::abs(number) > most) {
    throw misfit("it takes " + binding.name + " as " + binding.type + ", but here that is " +
                 std::to_string(number));
  }
  argument.kind = binding.type == "i32" ? MLG_CUDA_INT : MLG_CUDA_LONG;
  argument.integer = static_cast<std::int64_t>(number);
  require_divisible(argument.integer, "a multiple of");
  return argument;
}

std::unique_ptr<PlannedCall> CompiledKernel::plan(const mlg_launch& call) const {
  check_call(call);
  auto planned = std::make_unique<PlannedCall>();
  mlg_cuda_launch& launch = planned->launch;
  for (const Binding& binding : bindings_) planned->arguments.push_back(value(binding, call));

  static constexpr std::int64_t kMost[] = {0x7FFFFFFF, 65535, 65535};
  std::int64_t blocks = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const double wanted = axis < static_cast<int>(grid_.size()) ? grid_[axis].of(call) : 1;
    if (wanted > static_cast<double>(kMost[axis])) {
      throw misfit("axis " + std::to_string(axis) + " of its grid, " + grid_[axis].text() + ", would be " +
                   std::to_string(static_cast<std::int64_t>(std::min(wanted, 1e18))) + ", beyond CUDA's " +
                   std::to_string(kMost[axis]));
    }
    // An attribute may be any number.
    if (!(wanted >= 0 && wanted == std::floor(wanted)))
      throw misfit("axis " + std::to_string(axis) + " of its grid, " + grid_[axis].text() + ", would be " +
                   std::to_string(wanted) + ", which is not a whole number");
    const auto extent = static_cast<std::int64_t>(wanted);
    launch.grid[axis] = static_cast<std::uint32_t>(extent);
    launch.block[axis] = axis == 0 ? description_.threads : 1;
    blocks *= extent;
  }
  for (const Scratch& scratch : description_.scratch) {
    mlg_cuda_argument argument{};
    argument.kind = MLG_CUDA_WORKSPACE;
    argument.offset = planned->workspace_bytes;
    argument.bytes = scratch.bytes * static_cast<std::uint64_t>(blocks);
    planned->workspace_bytes += (argument.bytes + 255) / 256 * 256;
    planned->arguments.push_back(argument);
  }
  launch.function = description_.entry.c_str();
  launch.shared_bytes = description_.shared_bytes;
  launch.arguments = planned->arguments.data();
  launch.argument_count = static_cast<std::uint32_t>(planned->arguments.size());
  planned->plan = {&launch, blocks == 0 ? 0u : 1u};
  return planned;
}

}  // namespace mulligan::cuda::triton
