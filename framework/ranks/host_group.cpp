#include "framework/ranks/host_group.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/ranks/wire.h"

namespace mulligan {
namespace {

class SingleGroup final : public HostGroup {
 public:
  explicit SingleGroup(int world_size) : world_size_(world_size) {}
  int rank() const override { return 0; }
  int world_size() const override { return world_size_; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::string call(std::string_view, std::string_view bytes, const Answer& answer) override {
    if (world_size_ > 1) throw std::logic_error("a plan has no other ranks to talk to");
    return answer({std::string(bytes)});
  }
  void put(const std::string& key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    values_.insert_or_assign(key, std::string(value));
  }
  std::string get(const std::string& key, double) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) throw run_error("no rank has put '{}', and there is no other rank.", key);
    return found->second;
  }

 private:
  const int world_size_;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

}  // namespace

std::vector<std::string> HostGroup::all_gather(std::string_view bytes) {
  return from_wire<std::vector<std::string>>(call("all_gather", bytes, to_wire<std::vector<std::string>>));
}

std::string HostGroup::broadcast(std::string_view bytes) {
  return call("broadcast", rank() == 0 ? bytes : std::string_view(),
              [](const std::vector<std::string>& all) { return all[0]; });
}

void HostGroup::barrier() {
  call("barrier", {}, [](const std::vector<std::string>&) { return std::string(); });
}

void HostGroup::sum(std::span<double> values) {
  if (world_size() == 1) return;
  const std::string_view own(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  const std::string sums = consult(own, [&](const std::vector<std::string>& all) {
    std::vector<double> sum(values.size()), other(values.size());
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].size() != own.size()) return std::string();
      std::memcpy(other.data(), all[rank].data(), own.size());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = rank == 0 ? other[i] : sum[i] + other[i];
    }
    return std::string(reinterpret_cast<const char*>(sum.data()), own.size());
  });
  if (sums.size() != own.size()) throw run_error("ranks add up different numbers of values.");
  std::memcpy(values.data(), sums.data(), sums.size());
}

double HostGroup::agree(double value) {
  if (world_size() == 1) return value;
  const std::string bytes = broadcast({reinterpret_cast<const char*>(&value), sizeof value});
  if (bytes.size() != sizeof value)
    throw run_error("rank 0 sent {} bytes in place of a number.", bytes.size());
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

bool HostGroup::any(bool value) {
  double sum[] = {value ? 1.0 : 0.0};
  this->sum(sum);
  return sum[0] > 0;
}

double HostGroup::sum_in_order(std::span<const double> values) {
  double sum = 0;
  const auto add = [&](const std::vector<std::string>& all) {
    for (const std::string& bytes : all) {
      for (std::size_t at = 0; at + sizeof(double) <= bytes.size(); at += sizeof(double)) {
        double value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        sum += value;
      }
    }
    return std::string(reinterpret_cast<const char*>(&sum), sizeof sum);
  };
  const std::string added = consult({reinterpret_cast<const char*>(values.data()), values.size_bytes()}, add);
  std::memcpy(&sum, added.data(), std::min(added.size(), sizeof sum));
  return sum;
}

std::unique_ptr<HostGroup> make_single_group(int world_size) {
  return std::make_unique<SingleGroup>(world_size);
}

}  // namespace mulligan
