// A backend for tests of the training clock: it computes nothing, and its time is a number. The device works
// on one micro-batch after the other, `step_seconds` each (`later_step_seconds` from `later_from` on); the host's
// calls take no time, and time passes where the host waits for the device. As on a GPU uploads do not wait, but
// of 64 that the device has not fetched the oldest.
#include <mulligan/backend.hpp>
#include <mulligan/dtype.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

namespace {

namespace sdk = mulligan::sdk;

double now = 0;        // of the host, seconds
double asked_at = -1;  // when it was first asked for: when the training clock started; negative: not yet

struct Config {
  double step_seconds = 0.0867, later_step_seconds = 0.0867, later_from = 1e9;
  double cold_seconds = 0;
  int boundaries_bytes = 0;
};

class PacedDevice final : public sdk::Backend {
 public:
  static constexpr const char* summary = "computes nothing, in a time of its own; for tests";
  static inline const sdk::Schema<Config> schema{
      sdk::key("step_seconds", &Config::step_seconds, "what the device takes for a micro-batch"),
      sdk::key("later_step_seconds", &Config::later_step_seconds, "the same later"),
      sdk::key("later_from", &Config::later_from, "when that begins, in seconds of the training clock"),
      sdk::key("cold_seconds", &Config::cold_seconds, "what it takes before its first kernel of all"),
      sdk::key("boundaries_bytes", &Config::boundaries_bytes,
               "size of the upload that begins a micro-batch, and of no other")};

  explicit PacedDevice(const Config& config) : config_(config) { now = 0, asked_at = -1; }

  sdk::DeviceInfo info() const override { return {"paced device", 0, 0, 1}; }
  void* allocate(std::size_t bytes) override {
    const std::size_t whole = (bytes + 255) / 256 * 256;
    void* memory = std::aligned_alloc(256, whole);
    std::memset(memory, 0, whole);
    return memory;
  }
  void free(void* address) noexcept override { std::free(address); }
  void upload(void* device, const void* host, std::size_t bytes) override {
    if (bytes == static_cast<std::size_t>(config_.boundaries_bytes)) {
      const double begin = std::max(now, ends_);
      const bool later = asked_at >= 0 && begin - asked_at >= config_.later_from;
      ends_ = begin + (later ? config_.later_step_seconds : config_.step_seconds);
    }
    uploads_.push_back(ends_);
    if (uploads_.size() > 64) {
      wait(uploads_.front());
      uploads_.pop_front();
    }
    std::memcpy(device, host, bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    wait(ends_);
    std::memcpy(host, device, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memmove(to, from, bytes); }
  void zero(void* device, std::size_t bytes) override { std::memset(device, 0, bytes); }
  void add_kernels(std::span<const mlg_kernel>, bool) override {}
  const mlg_kernel* kernel_at(std::uint32_t) const noexcept override { return nullptr; }
  void* prepare(const sdk::Call& call, std::size_t&) override {
    auto made = std::make_unique<Prepared>();
    for (std::uint32_t i = 0; i < call.argument_count; ++i) {
      const mlg_tensor& tensor = call.arguments[i];
      std::size_t bytes = tensor.dtype == MLG_ABSENT ? 0 : sdk::dtype_bytes(tensor.dtype);
      for (int axis = 0; axis < tensor.rank; ++axis) bytes *= static_cast<std::size_t>(tensor.shape[axis]);
      made->bytes.push_back(bytes);
    }
    return made.release();
  }
  void bind(void* prepared, void* const* addresses, void*) override {
    auto& own = *static_cast<Prepared*>(prepared);
    own.addresses.assign(addresses, addresses + own.bytes.size());
  }
  // Results are zeros where memory was poisoned, as it is in the checks before the start; elsewhere what was there.
  void run(std::span<void* const> prepared) override {
    if (cold_) ends_ = std::max(now, ends_) + config_.cold_seconds;
    cold_ = false;
    for (void* one : prepared) {
      const auto& own = *static_cast<Prepared*>(one);
      for (std::size_t i = 0; i < own.bytes.size(); ++i) {
        if (!own.addresses[i] || own.bytes[i] < 4) continue;
        const auto* bytes = static_cast<const unsigned char*>(own.addresses[i]);
        const bool poisoned = bytes[0] != 0 && std::all_of(bytes, bytes + 4, [&](unsigned char byte) {
                                return byte == bytes[0];
                              });
        if (poisoned) std::memset(own.addresses[i], 0, own.bytes[i]);
      }
    }
  }
  void release(void* prepared) noexcept override { delete static_cast<Prepared*>(prepared); }
  void synchronize() override { wait(ends_); }
  void mark(std::uint32_t slot) override { marks_.at(slot) = ends_; }
  void await(std::uint32_t slot) override { wait(marks_.at(slot)); }

 private:
  struct Prepared {
    std::vector<std::size_t> bytes;
    std::vector<void*> addresses;
  };
  static void wait(double until) { now = std::max(now, until); }

  Config config_;
  bool cold_ = true;
  double ends_ = 0;  // of what the device was given
  std::array<double, MLG_MARKS> marks_{};
  std::deque<double> uploads_;  // when each is fetched
};

}  // namespace

extern "C" __attribute__((visibility("default"))) double paced_device_now() {
  if (asked_at < 0) asked_at = now;
  return now;
}

MULLIGAN_EXPORT_BACKEND(PacedDevice, paced_device);
