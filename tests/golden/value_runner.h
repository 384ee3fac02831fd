// Runs a few ops on a backend: values and gradients by name, for fixtures of a part of the model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/graph/program.h"
#include "framework/graph/tape.h"
#include "tests/support/plugins.h"
#include "tests/support/test_device.h"

namespace mulligan {

// On which kernels a fixture is run.
enum class GoldenKernels { plain, fused, cuda };

inline std::string name_of(GoldenKernels kernels) {
  return kernels == GoldenKernels::plain ? "plain" : kernels == GoldenKernels::fused ? "fused" : "cuda";
}

inline std::unique_ptr<Backend> make_golden_backend(GoldenKernels kernels) {
  auto backend = kernels == GoldenKernels::cuda
                     ? make_plugin<Backend>(MLG_BACKEND, "cuda", "device = \"" + test_device() + "\"")
                     : make_test_backend();
  backend->set_fused_kernels(kernels != GoldenKernels::plain);
  return backend;
}

class ValueRunner {
 public:
  explicit ValueRunner(Backend& backend)
      : tape_(graph_, true, FusedKernels(backend)), store_(backend), arena_(backend) {}

  Graph& graph() { return graph_; }
  Tape& tape() { return tape_; }

  Value input(const std::string& name, const std::vector<std::int64_t>& shape, DType dtype = MLG_F32) {
    TensorType type(dtype, {});
    type.rank = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), type.dims.begin());
    return graph_.external(name, type);
  }
  // The same, with a gradient "d NAME".
  Value watched(const std::string& name, const std::vector<std::int64_t>& shape) {
    const Value value = input(name, shape);
    tape_.watch(value, input("d " + name, shape));
    return value;
  }
  // Keeps a value under a name.
  void keep(const std::string& name, Value value) {
    graph_.call("cast", {value, graph_.external(name, graph_.type(value))});
  }
  // After the graph is complete: tensors exist from here on, gradients are zero.
  void prepare() {
    store_.create_externals(graph_);
    program_ = std::make_unique<Program>(store_.backend(), std::move(graph_), "fixture");
    arena_.bind({program_.get()}, store_);
    for (const std::string& name : store_.names()) {
      if (name.starts_with("d ")) store_.zero(name);
    }
  }
  template <typename T>
  void set(const std::string& name, const std::vector<T>& values) {
    store_.upload(name, values);
  }
  void run() { program_->run(); }
  std::vector<float> get(const std::string& name) const { return store_.download_as<float>(name); }

 private:
  Graph graph_;
  Tape tape_;
  TensorStore store_;
  SharedArena arena_;
  std::unique_ptr<Program> program_;
};

}  // namespace mulligan
