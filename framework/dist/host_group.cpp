#include "framework/dist/host_group.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "framework/core/error.h"

namespace mulligan {
namespace {

class SingleGroup final : public HostGroup {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::vector<std::string> all_gather(std::string_view bytes) override { return {std::string(bytes)}; }
  std::string broadcast(std::string_view bytes) override { return std::string(bytes); }
  void barrier() override {}
  void put(const std::string& key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    values_.insert_or_assign(key, std::string(value));
  }
  std::string get(const std::string& key, double) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) throw run_error("nobody has put '{}', and there is no other rank.", key);
    return found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

}  // namespace

void HostGroup::sum(std::span<double> values) {
  if (world_size() == 1) return;
  const std::string own(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  std::vector<double> other(values.size());
  bool first = true;
  for (const std::string& bytes : all_gather(own)) {
    if (bytes.size() != values.size_bytes()) throw run_error("ranks add up different numbers of values.");
    std::memcpy(other.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < other.size(); ++i) values[i] = first ? other[i] : values[i] + other[i];
    first = false;
  }
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

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 19;  // below the largest message

std::string_view piece_of(std::string_view bytes, std::size_t piece) {
  const std::size_t begin = std::min(bytes.size(), piece * piece_bytes);
  return bytes.substr(begin, piece_bytes);
}

}  // namespace

std::vector<std::string> HostGroup::gather_texts(std::string_view text) {
  std::vector<std::string> gathered(static_cast<std::size_t>(world_size()));
  bool more = true;
  for (std::size_t piece = 0; more; ++piece) {
    more = false;
    const std::vector<std::string> pieces = all_gather(piece_of(text, piece));
    for (std::size_t rank = 0; rank < pieces.size(); ++rank) {
      gathered[rank] += pieces[rank];
      more = more || pieces[rank].size() == piece_bytes;
    }
  }
  return gathered;
}

std::vector<double> HostGroup::gather_values(std::span<const double> values) {
  std::vector<double> all;
  for (const std::string& bytes :
       gather_texts({reinterpret_cast<const char*>(values.data()), values.size_bytes()})) {
    const std::size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(double));
    std::memcpy(all.data() + before, bytes.data(), (all.size() - before) * sizeof(double));
  }
  return all;
}

std::string HostGroup::broadcast_text(const std::string& text) {
  std::string whole;
  for (std::size_t piece = 0;; ++piece) {
    const std::string part = broadcast(piece_of(text, piece));
    whole += part;
    if (part.size() < piece_bytes) return whole;
  }
}

std::unique_ptr<HostGroup> make_single_group() {
  return std::make_unique<SingleGroup>();
}

}  // namespace mulligan
