#include <stdexcept>

#include "framework/ranks/communicator.h"

namespace mulligan {
namespace {

[[noreturn]] void refuse() {
  throw std::logic_error("a plan has no other ranks to talk to");
}

class PlannedGroup final : public HostGroup {
 public:
  explicit PlannedGroup(int world_size) : world_size_(world_size) {}
  int rank() const override { return 0; }
  int world_size() const override { return world_size_; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::vector<std::string> all_gather(std::string_view) override { refuse(); }
  std::string broadcast(std::string_view) override { refuse(); }
  void barrier() override { refuse(); }
  void put(const std::string&, std::string_view) override { refuse(); }
  std::string get(const std::string&, double) override { refuse(); }

 private:
  int world_size_;
};

class PlannedBatch final : public TransferBatch {
 public:
  void submit() override { refuse(); }
  void join() override { refuse(); }
};

class PlannedCommunicator final : public Communicator {
 public:
  explicit PlannedCommunicator(int world_size) : group_(world_size) {}
  HostGroup& group() override { return group_; }
  std::unique_ptr<TransferBatch> prepare(TensorStore&, std::vector<Transfer>) override {
    return std::make_unique<PlannedBatch>();
  }

 private:
  PlannedGroup group_;
};

}  // namespace

std::unique_ptr<Communicator> make_planned_communicator(int world_size) {
  return std::make_unique<PlannedCommunicator>(world_size);
}

}  // namespace mulligan
