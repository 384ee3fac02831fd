// C++ side of backend.h: derive from Backend, then MULLIGAN_EXPORT_BACKEND(Class, name).
// Contracts: backend.h.
#pragma once

#include <mulligan/backend.h>
#include <mulligan/cpu_kernel.hpp>
#include <mulligan/plugin.hpp>

#include <cstddef>
#include <span>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

using Call = mlg_call;
using DeviceInfo = mlg_device_info;
struct Made {
  const char* what = nullptr;
  std::uint64_t count = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual DeviceInfo info() const = 0;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* address) noexcept = 0;
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void zero(void* device, std::size_t bytes) = 0;
  virtual void add_kernels(std::span<const mlg_kernel> kernels, bool replace) = 0;
  virtual const mlg_kernel* kernel_at(std::uint32_t index) const noexcept = 0;
  // Returns the prepared call and stores the workspace that it needs.
  virtual void* prepare(const Call& call, std::size_t& workspace_bytes) = 0;
  virtual void bind(void* prepared, void* const* addresses, void* workspace) = 0;
  virtual void run(std::span<void* const> prepared) = 0;
  virtual void release(void* prepared) noexcept = 0;
  virtual void synchronize() = 0;
  // Replaces the code of the known kernel `name` by a compiled kernel of a file. Throws if it does not fit.
  virtual void replace_kernel(const char* name, const char* path) {
    (void)name, (void)path;
    throw Error("this backend takes no compiled kernels");
  }
  // By default a backend promises nothing.
  virtual mlg_determinism determinism() const noexcept { return MLG_DETERMINISM_NONE; }
  // The queue for collectives. None: the host moves a communicator's data by download() and upload().
  virtual mlg_queue queue() { return {MLG_QUEUE_NONE, nullptr, nullptr}; }
  // The work that the next run of a prepared and bound call would enqueue. Throws if it is not known.
  virtual mlg_work work(void* prepared) {
    (void)prepared;
    throw Error("this backend does not know what its calls launch");
  }
  // Marks in the order of the work. A backend without marks waits for all work.
  virtual void mark(std::uint32_t slot) { (void)slot; }
  virtual void await(std::uint32_t slot) {
    (void)slot;
    synchronize();
  }
  // Counts of slow preparations so far, by index; `what` is null past the end.
  virtual Made made(std::uint32_t index) const noexcept {
    (void)index;
    return {};
  }
};

template <typename Class>
mlg_backend_table make_backend_table(const char* name) {
  static constexpr auto at = [](void* self) -> Backend& { return *static_cast<Backend*>(self); };
  auto table = new_table<Class, Backend, mlg_backend_table>(MLG_BACKEND, name);
  table.info = [](void* self, mlg_device_info* out) -> mlg_error {
    return guarded([&] { *out = at(self).info(); });
  };
  table.allocate = [](void* self, std::size_t bytes, void** address) -> mlg_error {
    return guarded([&] { *address = at(self).allocate(bytes); });
  };
  table.free = [](void* self, void* address) { at(self).free(address); };
  table.upload = [](void* self, void* device, const void* host, std::size_t bytes) -> mlg_error {
    return guarded([&] { at(self).upload(device, host, bytes); });
  };
  table.download = [](void* self, void* host, const void* device, std::size_t bytes) -> mlg_error {
    return guarded([&] { at(self).download(host, device, bytes); });
  };
  table.copy = [](void* self, void* to, const void* from, std::size_t bytes) -> mlg_error {
    return guarded([&] { at(self).copy(to, from, bytes); });
  };
  table.zero = [](void* self, void* device, std::size_t bytes) -> mlg_error {
    return guarded([&] { at(self).zero(device, bytes); });
  };
  table.add_kernels = [](void* self, const mlg_kernel* kernels, std::uint32_t count,
                         std::int32_t replace) -> mlg_error {
    return guarded([&] { at(self).add_kernels(std::span(kernels, count), replace != 0); });
  };
  table.kernel_at = [](void* self, std::uint32_t index) { return at(self).kernel_at(index); };
  table.prepare = [](void* self, const mlg_call* call, void** prepared, std::size_t* workspace) -> mlg_error {
    return guarded([&] {
      *workspace = 0;
      *prepared = at(self).prepare(*call, *workspace);
    });
  };
  table.bind = [](void* self, void* prepared, void* const* addresses, void* workspace) -> mlg_error {
    return guarded([&] { at(self).bind(prepared, addresses, workspace); });
  };
  table.run = [](void* self, void* const* prepared, std::uint32_t count) -> mlg_error {
    return guarded([&] { at(self).run(std::span(prepared, count)); });
  };
  table.release = [](void* self, void* prepared) { at(self).release(prepared); };
  table.synchronize = [](void* self) -> mlg_error { return guarded([&] { at(self).synchronize(); }); };
  table.determinism = [](void* self) -> std::int32_t { return at(self).determinism(); };
  table.replace_kernel = [](void* self, const char* name, const char* path) -> mlg_error {
    return guarded([&] { at(self).replace_kernel(name, path); });
  };
  table.queue = [](void* self, mlg_queue* out) -> mlg_error {
    return guarded([&] { *out = at(self).queue(); });
  };
  table.work = [](void* self, void* prepared, mlg_work* out) -> mlg_error {
    return guarded([&] { *out = at(self).work(prepared); });
  };
  table.mark = [](void* self, std::uint32_t slot) -> mlg_error {
    return guarded([&] { at(self).mark(slot); });
  };
  table.await = [](void* self, std::uint32_t slot) -> mlg_error {
    return guarded([&] { at(self).await(slot); });
  };
  table.made = [](void* self, std::uint32_t index, std::uint64_t* count) -> const char* {
    const Made made = at(self).made(index);
    *count = made.count;
    return made.what;
  };
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_BACKEND(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_backend_table<Class>(#name))
