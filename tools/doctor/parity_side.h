// One side of a comparison: a parity graph on a backend, run call by call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/graph/program.h"
#include "tools/doctor/parity.h"
#include "tools/doctor/parity_graph.h"

namespace mulligan::doctor {

// Of a tensor as f32: empty where its dtype is none that holds numbers of the pass (i32 ids).
std::vector<float> numbers_of(const TensorStore& store, const std::string& name);

// Weights, inputs and values of one or two graphs on one backend.
class ParityMemory {
 public:
  explicit ParityMemory(Backend& backend) : store_(backend) {}
  TensorStore& store() { return store_; }
  // The tensors of `graph`, then weights and inputs into them. Matrices are rounded to `rounding` on the way,
  // so that a side in f32 has the weights of one in bf16.
  void fill(const ParityGraph& graph, const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
            const ParityWeights& weights, const ParityInputs& inputs, DType rounding);

 private:
  TensorStore store_;
};

class ParitySide {
 public:
  // `memory` holds all tensors of `graph` and must outlive this object, as must `graph`.
  ParitySide(ParityMemory& memory, const ParityGraph& graph, const std::string& name);

  void run(std::size_t call) { program_->run_range(call, call + 1); }
  // The elements of a value, which may be part of another.
  std::vector<float> numbers(Value value);
  // Overwrites all of the value that `value` is, or is part of; as many numbers, rounded to its dtype.
  void put(Value value, const std::vector<float>& numbers);
  // All of the value that `value` is, or is part of.
  std::vector<float> whole(Value value);
  double mean_loss();

 private:
  const ParityGraph& parity_;
  TensorStore& store_;
  std::unique_ptr<Program> program_;
  SharedArena arena_;
};

}  // namespace mulligan::doctor
