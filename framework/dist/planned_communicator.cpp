#include <stdexcept>

#include "framework/dist/communicator.h"

namespace mulligan {
namespace {

class PlannedCommunicator final : public Communicator {
 public:
  explicit PlannedCommunicator(int world_size) : world_size_(world_size) {}
  int rank() const override { return 0; }
  int world_size() const override { return world_size_; }
  void all_reduce(TensorStore&, std::string_view, Reduction) override { refuse(); }
  void broadcast(TensorStore&, std::string_view, int) override { refuse(); }
  void reduce_scatter(TensorStore&, std::string_view, std::string_view, Reduction) override { refuse(); }
  void all_gather(TensorStore&, std::string_view, std::string_view) override { refuse(); }
  void barrier(TensorStore&) override { refuse(); }
  void sum(std::span<double>) override { refuse(); }
  double agree(double) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("a plan has no other ranks to talk to"); }
  int world_size_;
};

}  // namespace

std::unique_ptr<Communicator> make_planned_communicator(int world_size) {
  return std::make_unique<PlannedCommunicator>(world_size);
}

}  // namespace mulligan
