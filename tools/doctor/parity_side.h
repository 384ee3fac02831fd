// One side of a comparison: a parity graph on a backend, run call by call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/fused_kernels.h"
#include "framework/graph/graph.h"
#include "framework/graph/program.h"
#include "framework/model/parameter_values.h"
#include "tools/doctor/parity.h"

namespace mulligan::doctor {

// The forward pass and its cross entropy as a graph in which every value outlasts its call and has a name.

// What the names of its inputs in a TensorStore start with (PackedInputWriter).
inline constexpr const char* parity_inputs = "parity/in";

class ParityGraph {
 public:
  // Of one packed row of `tokens` tokens, in the order in which the model is scored. Values that the forward
  // pass would keep in the arena become persistent tensors "<prefix>/ID".
  ParityGraph(const ModelConfig& model, const std::vector<ParameterLayout>& layouts, std::int64_t tokens,
              FusedKernels fused, const std::string& prefix);

  const Graph& graph() const { return graph_; }
  // The number of the call that computes the loss from the logits, its first argument; and
  // its result, [T] f32.
  std::size_t loss_call() const { return loss_call_; }
  Value token_loss() const { return token_loss_; }

  // The name of what a call writes: a named point or tap of the forward pass ("layers.3.q_rope", "logits"; 3
  // is the execution slot), otherwise the kernel with its slot ("layers.3.attention_fwd", numbered from the
  // second in a slot on).
  const std::string& label(std::size_t call) const { return labels_.at(call); }
  // The value after a named point or tap; absent where there is none of that name.
  Value named(const std::string& name) const;
  // Whether `value` is one that the forward pass computes, not a weight or an input.
  bool computed(Value value) const;

 private:
  void keep_values(const Graph& built, const std::string& prefix);
  void label_calls(const std::vector<std::uint32_t>& block_ends);

  Graph graph_;
  std::string prefix_;
  std::size_t loss_call_ = 0;
  Value token_loss_;
  std::vector<std::string> labels_;             // by call
  std::map<std::uint32_t, std::string> names_;  // by id of the value
};

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
