// Reverse-mode differentiation: ops write their forward calls into a Graph and leave a backward rule
// on a Tape.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/graph/fused_kernels.h"
#include "framework/graph/graph.h"

namespace mulligan {

class Tape;

// What a backward rule sees while its calls are being emitted.
class Backward {
 public:
  explicit Backward(Tape& tape) : tape_(tape) {}
  // Gradient with respect to an output of the op; absent when nothing downstream depends on it.
  Value of(Value output) const;

  // Where the gradient with respect to an input goes.
  struct Target {
    Value value;            // absent: not needed
    double accumulate = 0;  // 1: add to what is there (the kernel's accumulate_x attribute)
  };
  // Each call counts as one contribution: ask once per input and kernel call.
  Target into(Value input);
  // Like into(), for the first contribution only: the gradient takes over the storage of
  // `storage` (same type), which must not be read by any later call. Falls back to into() when
  // there is a contribution already, and for gradients of another dtype than their value's.
  Target into_storage_of(Value input, Value storage);
  // Like into(), for a first contribution that is the very gradient that `storage` holds for another value:
  // both are one tensor from now on, until one of them is added to, which then gets a copy of its own.
  // Whether that was done, and nothing is left to write; false where into() is to be asked.
  bool share(Value input, Value storage);
  bool needed(Value input) const;
  Graph& graph() const;

 private:
  // Whether the first contribution to the input's gradient may be a tensor that is there already.
  bool takes_storage(Value input) const;

  Tape& tape_;
};

// Records backward rules while a graph is built. With `differentiate` false it only passes the Graph along,
// so that training and evaluation share every op's code.
class Tape {
 public:
  Tape(Graph& graph, bool differentiate, FusedKernels fused = {})
      : graph_(graph), differentiate_(differentiate), fused_(fused) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Graph& graph() { return graph_; }
  bool differentiating() const { return differentiate_; }
  // What ops may use in the place of several plain calls.
  const FusedKernels& fused() const { return fused_; }

  // Declares a leaf: contributions to the gradient of `leaf` are added to `gradient` (same shape, f32,
  // external), which the caller zeroes. Views of `leaf` write into the same part of `gradient`.
  void watch(Value leaf, Value gradient);

  // The gradient of the computed `value` is kept in `dtype`, not in its own: f32 for sums over many matmuls
  // of a bf16 one. Before backward().
  void keep_gradient_in(Value value, DType dtype);

  // Whether `value` is, or was computed from, a watched leaf.
  bool needs_gradient(Value value) const;

  // Called by ops after their forward calls. `rule` emits the backward calls; it runs only if one of `inputs`
  // leads to a watched leaf and one of `outputs` has a gradient.
  void record(std::vector<Value> outputs, std::vector<Value> inputs, std::function<void(Backward&)> rule);

  // The first input of the op whose last forward call is number `call`, where that has left a rule.
  std::optional<Value> input_of(std::size_t call) const;
  // Makes the forward calls anew, each with its rule, in their order: in the place of call `at` what
  // replaced[at] records, which is nothing where that is empty. Before backward().
  void rewrite(const std::map<std::size_t, std::function<void()>>& replaced);

  // Emits the backward calls for the objective whose gradient with respect to `output` is `seed`.
  void backward(Value output, Value seed);

 private:
  friend class Backward;
  struct Entry {
    std::vector<Value> outputs;
    std::vector<Value> inputs;
    std::function<void(Backward&)> rule;
    std::size_t calls;  // that the graph had: the op's forward calls are the last of them
  };

  Graph& graph_;
  bool differentiate_;
  FusedKernels fused_;
  std::vector<Entry> entries_;
  std::unordered_map<std::uint32_t, Value> leaf_gradients_;   // by id of the watched leaf
  std::unordered_map<std::uint32_t, bool> depends_;           // values computed from a watched leaf
  std::unordered_map<std::uint32_t, Value> gradients_;        // by id of a computed value
  std::unordered_map<std::uint32_t, DType> gradient_dtypes_;  // where it is not the value's
  std::unordered_set<std::uint32_t> shared_;  // storage that is the gradient of several values
};

}  // namespace mulligan
