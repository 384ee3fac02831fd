#include "plugins/backends/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "plugins/backends/cpu/cpu_kernel.h"
#include "plugins/backends/cpu/cpu_machine.h"
#include "plugins/backends/cpu/cpu_signature.h"
#include "plugins/backends/cpu/worker_pool.h"

namespace mulligan::cpu {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
    }
  }
  return row[b.size()];
}

}  // namespace

PreparedCall::PreparedCall(const mlg_kernel& kernel, const mlg_call& call) : kernel_(kernel) {
  const Signature signature = parse_signature(kernel.name, kernel.signature);
  const std::string where = std::string("kernel ") + kernel.name + ": ";
  if (call.argument_count != signature.arguments.size()) {
    throw std::runtime_error(where + "the call gives " + std::to_string(call.argument_count) +
                             " arguments, its signature '" + kernel.signature + "' has " +
                             std::to_string(signature.arguments.size()));
  }
  arguments_.assign(call.arguments, call.arguments + call.argument_count);
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    mlg_tensor& argument = arguments_[i];
    argument.data = nullptr;
    if (argument.dtype == MLG_ABSENT && !signature.arguments[i].optional) {
      throw std::runtime_error(where + "argument " + signature.arguments[i].name +
                               " is required, but the call leaves it out");
    }
  }
  place_attributes(signature.attributes, call);

  launch_.arguments = arguments_.data();
  launch_.argument_count = static_cast<std::uint32_t>(arguments_.size());
  launch_.attributes = attributes_.data();
  launch_.parallel_for = parallel_for;
  if (kernel_.prepare != nullptr) {
    mlg_preparation preparation{};
    if (const mlg_error error = kernel_.prepare(&launch_, &preparation)) throw std::runtime_error(error);
    launch_.state = preparation.state;
    workspace_bytes_ = preparation.workspace_bytes;
  }
}

void PreparedCall::place_attributes(const std::vector<std::string>& names, const mlg_call& call) {
  attributes_.assign(names.size(), 0.0);
  std::vector<bool> given(names.size(), false);
  for (std::uint32_t i = 0; i < call.attribute_count; ++i) {
    const auto place = std::find(names.begin(), names.end(), call.attributes[i].name);
    const std::size_t index = static_cast<std::size_t>(place - names.begin());
    if (place == names.end() || given[index]) {
      throw std::runtime_error(std::string("kernel ") + kernel_.name + ": attribute " +
                               call.attributes[i].name +
                               (place == names.end() ? " is not" : " is given twice, but only once") +
                               " in its signature '" + kernel_.signature + "'");
    }
    attributes_[index] = call.attributes[i].value;
    given[index] = true;
  }
  const auto missing = std::find(given.begin(), given.end(), false);
  if (missing != given.end()) {
    throw std::runtime_error(std::string("kernel ") + kernel_.name + ": the call does not give attribute " +
                             names[static_cast<std::size_t>(missing - given.begin())]);
  }
}

PreparedCall::~PreparedCall() {
  if (kernel_.release != nullptr && launch_.state != nullptr) kernel_.release(launch_.state);
}

void PreparedCall::bind(void* const* addresses, void* workspace) {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    mlg_tensor& argument = arguments_[i];
    const bool empty =
        argument.dtype == MLG_ABSENT ||
        std::any_of(argument.shape, argument.shape + MLG_MAX_RANK, [](std::int64_t n) { return n == 0; });
    if (!empty && addresses[i] == nullptr) {
      throw std::runtime_error(
          std::string("kernel ") + kernel_.name + ": argument " +
          parse_signature(kernel_.name, kernel_.signature).arguments[i].name +
          " is bound to no address; bind every argument that the call was prepared with");
    }
    argument.data = argument.dtype == MLG_ABSENT ? nullptr : addresses[i];
  }
  if (workspace_bytes_ > 0 && workspace == nullptr) {
    throw std::runtime_error(std::string("kernel ") + kernel_.name + ": it needs " +
                             std::to_string(workspace_bytes_) + " bytes of workspace, but none was bound");
  }
  launch_.workspace = workspace;
}

Backend::Backend(const BackendConfig& config)
    : threads_(config.threads > 0 ? config.threads : default_thread_count()),
      description_(processor_name() + ", " + std::to_string(threads_) +
                   (threads_ == 1 ? " thread" : " threads")) {
  Backend::add_kernels(registered_kernels(), false);
}

void Backend::enter() const {
  set_thread_count(threads_);
}

sdk::DeviceInfo Backend::info() const {
  return {description_.c_str(), memory_bytes(), threads_, 1};
}

void* Backend::allocate(std::size_t bytes) {
  enter();
  return allocate_zeroed(bytes);
}

void Backend::free(void* address) noexcept {
  free_memory(address);
}

void Backend::upload(void* device, const void* host, std::size_t bytes) {
  copy(device, host, bytes);
}
void Backend::download(void* host, const void* device, std::size_t bytes) {
  copy(host, device, bytes);
}

void Backend::copy(void* to, const void* from, std::size_t bytes) {
  enter();
  copy_memory(to, from, bytes);
}

void Backend::zero(void* device, std::size_t bytes) {
  enter();
  zero_memory(device, bytes);
}

void Backend::add_kernels(std::span<const mlg_kernel> kernels, bool replace) {
  for (const mlg_kernel& kernel : kernels) {
    if (std::strcmp(kernel.backend, "cpu") != 0) continue;
    const auto known = index_.find(std::string_view(kernel.name));
    if (kernel.run == nullptr) {
      throw std::runtime_error(std::string("kernel ") + kernel.name +
                               " has no run function for the cpu backend");
    }
    if (known != index_.end() && !replace) {
      throw std::runtime_error(
          std::string("kernel ") + kernel.name +
          " exists already on the cpu backend; give it another name, or replace it explicitly");
    }
    parse_signature(kernel.name, kernel.signature);
    if (known != index_.end()) {
      kernels_[known->second] = kernel;
    } else {
      index_.emplace(kernel.name, kernels_.size());
      kernels_.push_back(kernel);
    }
  }
}

const mlg_kernel* Backend::kernel_at(std::uint32_t index) const noexcept {
  return index < kernels_.size() ? &kernels_[index] : nullptr;
}

const mlg_kernel& Backend::kernel_named(std::string_view name) const {
  if (const auto known = index_.find(name); known != index_.end()) return kernels_[known->second];
  const auto nearest = std::min_element(index_.begin(), index_.end(), [&](const auto& a, const auto& b) {
    return edit_distance(a.first, name) < edit_distance(b.first, name);
  });
  throw std::runtime_error("the cpu backend has no kernel named " + std::string(name) +
                           (nearest == index_.end() ? "" : "; the nearest name is " + nearest->first));
}

void* Backend::prepare(const sdk::Call& call, std::size_t& workspace_bytes) {
  enter();  // oneDNN divides its work when a primitive is made
  auto prepared = std::make_unique<PreparedCall>(kernel_named(call.kernel), call);
  workspace_bytes = prepared->workspace_bytes();
  return prepared.release();
}

void Backend::bind(void* prepared, void* const* addresses, void* workspace) {
  static_cast<PreparedCall*>(prepared)->bind(addresses, workspace);
}

void Backend::run(std::span<void* const> prepared) {
  enter();
  for (void* call : prepared) sdk::check(static_cast<const PreparedCall*>(call)->run());
}

void Backend::release(void* prepared) noexcept {
  delete static_cast<PreparedCall*>(prepared);
}

MULLIGAN_EXPORT_BACKEND(Backend, cpu);

}  // namespace mulligan::cpu
