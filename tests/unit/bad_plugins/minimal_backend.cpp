// A backend that overrides what it must and leaves the defaults, so it promises nothing of repeated runs.
#include <mulligan/backend.hpp>

#include <cstdlib>
#include <cstring>

namespace {

namespace sdk = mulligan::sdk;

struct Config {};

class MinimalBackend final : public sdk::Backend {
 public:
  static constexpr const char* summary = "has memory and no kernels";
  static inline const sdk::Schema<Config> schema{};

  explicit MinimalBackend(const Config&) {}
  sdk::DeviceInfo info() const override { return {"a backend that fills what it must", 0, 0, 1}; }
  void* allocate(std::size_t bytes) override { return std::calloc(bytes, 1); }
  void free(void* address) noexcept override { std::free(address); }
  void upload(void* device, const void* host, std::size_t bytes) override {
    std::memcpy(device, host, bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    std::memcpy(host, device, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memmove(to, from, bytes); }
  void zero(void* device, std::size_t bytes) override { std::memset(device, 0, bytes); }
  void add_kernels(std::span<const mlg_kernel>, bool) override {}
  const mlg_kernel* kernel_at(std::uint32_t) const noexcept override { return nullptr; }
  void* prepare(const sdk::Call&, std::size_t&) override { throw sdk::Error("it has no kernels"); }
  void bind(void*, void* const*, void*) override {}
  void run(std::span<void* const>) override {}
  void release(void*) noexcept override {}
  void synchronize() override {}
};

}  // namespace

MULLIGAN_EXPORT_BACKEND(MinimalBackend, minimal_backend);
