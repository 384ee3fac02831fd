#include "framework/plugin/backend.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

namespace mulligan {
namespace {

// Ranks of one process, such as the threads of a test, add kernels at once.
std::mutex owners_mutex;
std::map<std::string, const char*, std::less<>> kernel_owners;
std::set<std::string> owner_texts;  // none goes

}  // namespace

const char* kernel_owner(std::string_view kernel) {
  const std::lock_guard lock(owners_mutex);
  const auto owner = kernel_owners.find(kernel);
  return owner == kernel_owners.end() ? nullptr : owner->second;
}

void DeviceBuffer::Free::operator()(void* address) const {
  backend->table().free(backend->instance(), address);
  backend->allocated_bytes_ -= bytes;
}

void PreparedCall::Release::operator()(void* handle) const {
  backend->table().release(backend->instance(), handle);
}

void PreparedCall::bind(void* const* addresses, void* workspace) {
  Backend& backend = *handle_.get_deleter().backend;
  backend.call(backend.table().bind, handle(), addresses, workspace);
}

mlg_device_info Backend::info() const {
  auto info = result<mlg_device_info>(table().info);
  if (!info.description) info.description = "";
  return info;
}

mlg_queue Backend::queue() const {
  return result<mlg_queue>(table().queue);
}

mlg_work Backend::work(void* handle) const {
  return result<mlg_work>(table().work, handle);
}

std::vector<std::pair<std::string, std::uint64_t>> Backend::made() const {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  std::uint64_t count = 0;
  for (std::uint32_t i = 0; const char* what = table().made(instance(), i, &count); ++i)
    all.emplace_back(what, count);
  return all;
}

DeviceBuffer Backend::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  auto* const address = result<void*>(table().allocate, bytes);
  allocated_bytes_ += bytes;
  peak_allocated_bytes_ = std::max(peak_allocated_bytes_, allocated_bytes_);
  return {*this, address, bytes};
}

void Backend::add_kernels(const Plugin& plugin) {
  const std::span<const mlg_kernel> kernels = plugin.kernels();
  if (kernels.empty() || added_.contains(kernels.data())) return;
  {
    const std::lock_guard lock(owners_mutex);
    const char* owner = owner_texts.insert(plugin.description()).first->c_str();
    for (const mlg_kernel& kernel : kernels) kernel_owners[kernel.name] = owner;
  }
  if (mlg_error error =
          table().add_kernels(instance(), kernels.data(), static_cast<std::uint32_t>(kernels.size()), 0)) {
    throw config_error("{} refuses the kernels of {}: {}", this->plugin().description(), plugin.description(),
                       error);
  }
  added_.insert(kernels.data());
  replace_known_kernels();
}

bool Backend::has_kernel(std::string_view name) const {
  for (std::uint32_t i = 0; const mlg_kernel* kernel = kernel_at(i); ++i) {
    if (name == kernel->name) return true;
  }
  return false;
}

void Backend::replace_kernel(const std::string& name, const std::string& file, const std::string& where) {
  replacements_.push_back({name, file, where});
  replace_known_kernels();
}

void Backend::replace_known_kernels() {
  for (Replacement& replacement : replacements_) {
    for (std::uint32_t i = 0; const mlg_kernel* known = kernel_at(i); ++i) {
      if (replacement.done || replacement.name != known->name) continue;
      if (mlg_error error =
              table().replace_kernel(instance(), replacement.name.c_str(), replacement.file.c_str())) {
        throw config_error("{}: {} refuses this file in place of {}: {}", replacement.where,
                           plugin().description(), replacement.name, error);
      }
      replacement.done = true;
    }
  }
}

PreparedCall Backend::prepare(const mlg_call& call) {
  void* handle = nullptr;
  std::size_t workspace_bytes = 0;
  if (mlg_error error = table().prepare(instance(), &call, &handle, &workspace_bytes)) {
    const auto replaced = std::ranges::find(replacements_, call.kernel, &Replacement::name);
    if (replaced != replacements_.end()) throw config_error("{}: {}", replaced->where, error);
    check(error);
  }
  return {*this, handle, workspace_bytes};
}

void Backend::run(std::span<void* const> handles) {
  if (watch_) watch_->runs(handles);
  const mlg_error error = table().run(instance(), handles.data(), static_cast<std::uint32_t>(handles.size()));
  if (!error) return;
  const mlg_running failed = std::exchange(*plugin_running(), {});
  if (!failed.kernel) throw run_error("{}: {}", plugin().description(), error);
  const char* owner = kernel_owner(failed.kernel);
  throw KernelFailure(failed.call, fmt::format("kernel '{}' of {} failed: {}", failed.kernel,
                                               owner ? owner : plugin().description(), error));
}

}  // namespace mulligan
