// The forward pass and its cross entropy as a graph in which every value outlasts its call and has a name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/graph/fused_kernels.h"
#include "framework/graph/graph.h"
#include "framework/model/parameter_values.h"

namespace mulligan::doctor {

// What the names of its inputs in a TensorStore start with (PackedInputWriter).
inline constexpr const char* parity_inputs = "parity/in";

class ParityGraph {
 public:
  // Of one packed row of `tokens` tokens, in the order in which the model is scored. Values that the forward
  // pass would keep in the arena become persistent tensors "<prefix>/ID".
  ParityGraph(const ModelConfig& model, const std::vector<ParameterLayout>& layouts, std::int64_t tokens,
              FusedKernels fused, const std::string& prefix);

  const Graph& graph() const { return graph_; }
  // The number of the call that computes the loss from the logits, its first argument; and its result, [T]
  // f32.
  std::size_t loss_call() const { return loss_call_; }
  Value token_loss() const { return token_loss_; }

  // The name of what a call writes: a named point or tap of the forward pass ("layers.3.q_rope", "logits"; 3
  // is the execution slot), otherwise the kernel with its slot ("layers.3.attention_fwd", numbered from the
  // second in a slot on).
  const std::string& label(std::size_t call) const { return labels_.at(call); }
  // The value behind a named point or tap; absent where there is none of that name.
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

}  // namespace mulligan::doctor
