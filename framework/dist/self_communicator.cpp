#include <fmt/format.h>

#include <stdexcept>

#include "framework/dist/communicator.h"

namespace mulligan {
namespace {

// A world of one: reductions leave their tensor as it is. The checks are those of every communicator, so that
// a call that could not work with more ranks does not work here either.
class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }

  void all_reduce(TensorStore& store, std::string_view tensor, Reduction) override {
    require_float(store, tensor, "all_reduce");
  }
  void broadcast(TensorStore& store, std::string_view tensor, int root) override {
    store.type(tensor);
    if (root != 0) throw std::logic_error(fmt::format("broadcast from rank {} of 1", root));
  }
  void reduce_scatter(TensorStore& store, std::string_view full, std::string_view slice, Reduction) override {
    require_float(store, full, "reduce_scatter");
    if (full != slice) store.copy(slice, full);
  }
  void all_gather(TensorStore& store, std::string_view slice, std::string_view full) override {
    store.type(full);
    if (full != slice) store.copy(full, slice);
  }
  void barrier(TensorStore& store) override { store.backend().synchronize(); }
  void sum(std::span<double>) override {}
  double agree(double value) override { return value; }

 private:
  static void require_float(const TensorStore& store, std::string_view tensor, const char* collective) {
    const DType dtype = store.type(tensor).dtype;
    if (dtype != MLG_F32 && dtype != MLG_F64) {
      throw std::logic_error(
          fmt::format("{} of '{}': it is {}, not f32 or f64", collective, tensor, dtype_name(dtype)));
    }
  }
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() {
  return std::make_unique<SelfCommunicator>();
}

}  // namespace mulligan
