// The communicator of a world of one, on memory of the host: every collective is a copy, done when submit()
// returns. The smallest example of its kind.
#include <mulligan/communicator.hpp>
#include <mulligan/dtype.hpp>

#include <atomic>
#include <cstring>
#include <vector>

namespace {

namespace sdk = mulligan::sdk;

class Self final : public sdk::Communicator {
 public:
  static constexpr const char *version = "1.0", *summary = "a world of one rank: copies within its memory";

  void open(const sdk::Group& group, const mlg_queue& queue, double) override {
    if (group.size() != 1) {
      throw sdk::Error("'self' is for a run of one rank, and there are " + std::to_string(group.size()) +
                       "; set communicator.plugin to one that moves data, such as \"gloo\"");
    }
    if (queue.kind != MLG_QUEUE_HOST) {
      throw sdk::Error("'self' copies within memory of the host, and the backend's is a device's");
    }
  }
  void* prepare(std::span<const sdk::Collective> list) override {
    return new Batch(list.begin(), list.end());
  }
  std::uint64_t submit(void* prepared) override {
    if (aborted_) throw sdk::Error("the communicator was aborted");
    for (const sdk::Collective& one : *static_cast<const Batch*>(prepared)) {
      const auto bytes = static_cast<std::size_t>(one.count) * sdk::dtype_bytes(one.dtype);
      if (one.to != one.from && bytes > 0) std::memcpy(one.to, one.from, bytes);
    }
    return ++completed_;
  }
  void join(std::uint64_t) override {
    if (aborted_) throw sdk::Error("the communicator was aborted");
  }
  std::uint64_t poll() override {
    if (aborted_) throw sdk::Error("the communicator was aborted");
    return completed_;
  }
  void abort() noexcept override { aborted_ = true; }
  void release(void* prepared) noexcept override { delete static_cast<Batch*>(prepared); }

 private:
  using Batch = std::vector<sdk::Collective>;
  std::atomic<std::uint64_t> completed_ = 0;
  std::atomic<bool> aborted_ = false;
};

}  // namespace

MULLIGAN_EXPORT_COMMUNICATOR(Self, self);
