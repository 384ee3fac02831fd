// Backend: memory and kernels of one device, made by a plugin; contracts of the
// calls in <mulligan/backend.h>.
#pragma once

#include <mulligan/backend.h>

#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class Backend;

// The plugin that brings the kernel, in words ("loss 'x' (/path)"); null: the kernel is the backend's own.
const char* kernel_owner(std::string_view kernel);

// A kernel reported an error while it ran.
class KernelFailure : public Error {
 public:
  KernelFailure(std::size_t call, std::string sentence)
      : Error(ExitCode::run_failed, std::move(sentence)), call_(call) {}
  std::size_t call() const { return call_; }  // its place in the list that Backend::run was given

 private:
  std::size_t call_;
};

// Device memory, freed with the object. Move-only; the backend must outlive it.
class DeviceBuffer {
 public:
  DeviceBuffer() : memory_(nullptr, Free{}) {}
  DeviceBuffer(Backend& backend, void* address, std::size_t bytes)
      : memory_(address, Free{&backend, bytes}) {}

  void* address() const { return memory_.get(); }
  std::size_t bytes() const { return memory_.get_deleter().bytes; }

 private:
  struct Free {
    void operator()(void* address) const;
    Backend* backend = nullptr;
    std::size_t bytes = 0;
  };
  std::unique_ptr<void, Free> memory_;
};

// A kernel call that was checked and made ready, released with the object. Move-only; the backend
// must outlive it.
class PreparedCall {
 public:
  PreparedCall() : handle_(nullptr, Release{}) {}
  PreparedCall(Backend& backend, void* handle, std::size_t workspace_bytes)
      : handle_(handle, Release{&backend}), workspace_bytes_(workspace_bytes) {}

  void* handle() const { return handle_.get(); }  // what Backend::run takes
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Fixes the addresses, in the order of the kernel's signature (null for an absent argument),
  // and the workspace.
  void bind(void* const* addresses, void* workspace);

 private:
  struct Release {
    void operator()(void* handle) const;
    Backend* backend = nullptr;
  };
  std::unique_ptr<void, Release> handle_;
  std::size_t workspace_bytes_ = 0;
};

// Observes the calls that a backend is about to run. With it a step can be recorded on a backend that computes nothing, and be
// counted.
class BackendWatch {
 public:
  virtual ~BackendWatch() = default;
  virtual void runs(std::span<void* const> handles) = 0;
  virtual void zeroes(std::size_t bytes) = 0;
  virtual void copies(std::size_t bytes) = 0;
  virtual void uploads(std::size_t bytes) = 0;
};

// One thread at a time. Work is enqueued in the order of the calls; download(), synchronize() and await() wait
// for it.
// Every function throws run_error with the backend's own sentence when it fails.
class Backend : public PluginInstance<mlg_backend_table> {
 public:
  // The backend starts with the kernels that its own plugin brings.
  using PluginInstance::PluginInstance;

  // Its description is not null.
  mlg_device_info info() const;

  // Bytes of all live buffers of allocate(), and their maximum so far. Memory that the plugin allocates for itself (libraries,
  // page-locked staging, a driver's context) is not included.
  std::size_t allocated_bytes() const { return allocated_bytes_; }
  std::size_t peak_allocated_bytes() const { return peak_allocated_bytes_; }

  // Zeroed memory, aligned to 256 bytes. Zero bytes give a buffer with a null address. Not on the step path.
  DeviceBuffer allocate(std::size_t bytes);
  void upload(void* device, const void* host, std::size_t bytes) {
    if (watch_) watch_->uploads(bytes);
    call(table().upload, device, host, bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) {
    call(table().download, host, device, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) {
    if (watch_) watch_->copies(bytes);
    call(table().copy, to, from, bytes);
  }
  void zero(void* device, std::size_t bytes) {
    if (watch_) watch_->zeroes(bytes);
    call(table().zero, device, bytes);
  }

  // Makes the kernels of another plugin callable (those for other backends are ignored), once. Throws config_error if a name
  // exists already.
  void add_kernels(const Plugin& plugin);
  // Puts a compiled kernel of a file in place of the kernel `name`. If this instance does not know the name yet, this happens
  // when add_kernels() brings the kernel. From then on a refused call of the kernel is a config_error. `where` begins the
  // messages. Throws config_error with the backend's sentence if it refuses the file, or does not support files.
  void replace_kernel(const std::string& name, const std::string& file, const std::string& where);
  // The kernels that this instance can run, or those of the device that it acts for; null past the end.
  const mlg_kernel* kernel_at(std::uint32_t index) const {
    return device_ ? device_->kernel_at(index) : table().kernel_at(instance(), index);
  }
  bool has_kernel(std::string_view name) const;
  // Whether graphs for this backend may use its fused kernels (run.fused_kernels); true at first.
  bool fused_kernels() const { return device_ ? device_->fused_kernels() : fused_kernels_; }
  void set_fused_kernels(bool use) { fused_kernels_ = use; }
  // From now on graphs for this backend are those for `device`. A recording backend, which lists no kernels of its own,
  // plans for a device in this way. `device` must outlive this object.
  void act_for(const Backend& device) { device_ = &device; }

  // Checks a call (data pointers null) and makes it ready.
  PreparedCall prepare(const mlg_call& call);
  // Enqueues prepared and bound calls, given by their handles, in order. No allocation.
  // Throws KernelFailure if the backend reports which kernel failed.
  void run(std::span<void* const> handles);
  void synchronize() { call(table().synchronize); }
  // Notes the present place in the order of the work under `slot`, below MLG_MARKS; await() waits until the
  // work up to there has ended. A backend without marks waits for all of it.
  void mark(std::uint32_t slot) { call(table().mark, slot); }
  void await(std::uint32_t slot) { call(table().await, slot); }
  // The work that the next run of a prepared and bound call would enqueue, by its handle. Throws run_error if the backend does
  // not know it.
  mlg_work work(void* handle) const;
  // The backend's counts of slow preparations so far ("attention_plans"); empty: it has no counts.
  std::vector<std::pair<std::string, std::uint64_t>> made() const;
  // Null: no watch. The watch must outlive the backend, or be removed before.
  void watch(BackendWatch* watch) { watch_ = watch; }
  // The queue for collectives; kind MLG_QUEUE_NONE: the backend gives none.
  mlg_queue queue() const;
  // Whether the backend promises that a repeated run gives the same bits, with its present kernels.
  bool repeats() const { return promises() >= MLG_DETERMINISM_RUN; }
  mlg_determinism promises() const { return static_cast<mlg_determinism>(table().determinism(instance())); }

 private:
  friend class DeviceBuffer;
  friend class PreparedCall;
  struct Replacement {
    std::string name, file, where;
    bool done = false;
  };
  void replace_known_kernels();
  std::set<const mlg_kernel*> added_;  // first kernels of the plugins that were added
  std::vector<Replacement> replacements_;
  std::size_t allocated_bytes_ = 0, peak_allocated_bytes_ = 0;
  BackendWatch* watch_ = nullptr;
  bool fused_kernels_ = true;
  const Backend* device_ = nullptr;
};

}  // namespace mulligan
