// The null backend accepts every allocation and every call, and computes nothing. With it a whole run can be built and
// replayed on any machine, also with shapes that would not fit its memory. Dry runs, listings and tests of recordings use it.
//
// Its addresses are never dereferenced. They are consecutive ranges of a private address space, aligned to 256 bytes and
// without overlap. download() writes zeros, because its memory holds no results.
#include <mulligan/backend.hpp>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace {

namespace sdk = mulligan::sdk;

// A prepared call.
struct Prepared {
  std::string kernel;
  bool bound = false;
};

struct Config {
  bool log_calls = false;
};

class NullBackend final : public sdk::Backend {
 public:
  static constexpr const char* summary = "records launches and shapes, computes nothing, needs no memory";
  static inline const sdk::Schema<Config> schema{
      sdk::key("log_calls", &Config::log_calls, "write each prepared call with its shapes to the log")};

  explicit NullBackend(const Config& config) : config_(config) {}

  sdk::DeviceInfo info() const override { return {"null backend (computes nothing)", 0, 0, 0}; }

  void* allocate(std::size_t bytes) override {
    constexpr std::uintptr_t kAlignment = 256;
    const std::uintptr_t address = next_;
    if (bytes > kEnd - next_ - kAlignment) throw sdk::Error("the null backend ran out of addresses");
    next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): never dereferenced
  }
  void free(void*) noexcept override {}
  void upload(void*, const void*, std::size_t) override {}
  void download(void* host, const void*, std::size_t bytes) override { std::memset(host, 0, bytes); }
  void copy(void*, const void*, std::size_t) override {}
  void zero(void*, std::size_t) override {}
  // Every kernel name may be called, so there is no list of kernels.
  void add_kernels(std::span<const mlg_kernel>, bool) override {}
  const mlg_kernel* kernel_at(std::uint32_t) const noexcept override { return nullptr; }

  void* prepare(const sdk::Call& call, std::size_t& workspace_bytes) override {
    workspace_bytes = 0;
    if (config_.log_calls) log_call(call);
    return new Prepared{call.kernel};
  }
  void bind(void* prepared, void* const*, void*) override { static_cast<Prepared*>(prepared)->bound = true; }
  void run(std::span<void* const> prepared) override {
    for (void* call : prepared) {
      if (!static_cast<Prepared*>(call)->bound) {
        throw sdk::Error("the kernel call '" + static_cast<Prepared*>(call)->kernel +
                         "' was run before it was bound");
      }
    }
  }
  void release(void* prepared) noexcept override { delete static_cast<Prepared*>(prepared); }
  void synchronize() override {}
  mlg_determinism determinism() const noexcept override { return MLG_DETERMINISM_RUN; }

 private:
  // User addresses of x86-64 end at 2^47. The first 4 GiB stay free, so that no small number is a valid address.
  static constexpr std::uintptr_t kBegin = std::uintptr_t{1} << 32, kEnd = std::uintptr_t{1} << 47;

  static void log_call(const sdk::Call& call) {
    std::string line = std::string("null backend: ") + call.kernel;
    for (const mlg_tensor& tensor : std::span(call.arguments, call.argument_count)) {
      line += " [";
      for (int axis = 0; axis < tensor.rank; ++axis)
        line += (axis ? "," : "") + std::to_string(tensor.shape[axis]);
      line += tensor.dtype == MLG_ABSENT ? "absent]" : "]";
    }
    sdk::log(sdk::LogLevel::info, line);
  }

  Config config_;
  std::uintptr_t next_ = kBegin;
};

}  // namespace

MULLIGAN_EXPORT_BACKEND(NullBackend, null);
