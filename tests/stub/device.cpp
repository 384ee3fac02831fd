// A backend on the stub of the driver: memory of the host, work in the order of a stream. It has no kernels.
#include <mulligan/backend.hpp>

#include <cstdint>
#include <cstring>

extern "C" {
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamDestroy_v2(void* stream);
int cuStreamSynchronize(void* stream);
int cuMemAlloc_v2(std::uintptr_t* address, std::size_t bytes);
int cuMemFree_v2(std::uintptr_t address);
int cuMemcpyAsync(void* to, const void* from, std::size_t bytes, void* stream);
}

namespace {

namespace sdk = mulligan::sdk;

class Device final : public sdk::Backend {
 public:
  static constexpr const char* summary = "the stub driver's memory and one stream, for tests";
  Device() { cuStreamCreate(&stream_, 0); }
  ~Device() override { cuStreamDestroy_v2(stream_); }
  sdk::DeviceInfo info() const override { return {"stub device", 0, 0, 1}; }
  void* allocate(std::size_t bytes) override {
    std::uintptr_t memory = 0;
    cuMemAlloc_v2(&memory, bytes);
    std::memset(reinterpret_cast<void*>(memory), 0, bytes);
    return reinterpret_cast<void*>(memory);
  }
  void free(void* address) noexcept override {
    cuStreamSynchronize(stream_);
    cuMemFree_v2(reinterpret_cast<std::uintptr_t>(address));
  }
  void upload(void* device, const void* host, std::size_t bytes) override {
    copy(device, host, bytes);
    synchronize();
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    copy(host, device, bytes);
    synchronize();
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    cuMemcpyAsync(to, from, bytes, stream_);
  }
  void zero(void* device, std::size_t bytes) override {
    synchronize();
    std::memset(device, 0, bytes);
  }
  void add_kernels(std::span<const mlg_kernel>, bool) override {}
  const mlg_kernel* kernel_at(std::uint32_t) const noexcept override { return nullptr; }
  void* prepare(const sdk::Call&, std::size_t&) override {
    throw sdk::Error("the stub device has no kernels");
  }
  void bind(void*, void* const*, void*) override {}
  void run(std::span<void* const>) override {}
  void release(void*) noexcept override {}
  void synchronize() override { cuStreamSynchronize(stream_); }
  mlg_queue queue() override { return {MLG_QUEUE_CUDA, stream_, nullptr}; }

 private:
  void* stream_ = nullptr;
};

}  // namespace

MULLIGAN_EXPORT_BACKEND(Device, stub_device);
