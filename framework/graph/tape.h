// Reverse-mode differentiation: ops write their forward calls into a Graph and put a backward rule on a Tape.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/graph/call_access.h"
#include "framework/graph/graph.h"

namespace mulligan {

class Tape;

// The interface of a backward rule while it emits its calls.
class Backward {
 public:
  explicit Backward(Tape& tape) : tape_(tape) {}
  // Gradient with respect to an output of the op; absent if nothing downstream depends on it.
  Value of(Value output) const;

  // The destination of the gradient with respect to an input.
  struct Target {
    Value value;            // absent: not needed
    double accumulate = 0;  // 1: add to what is there (the kernel's accumulate_x attribute)
  };
  // Each call counts as one contribution: ask once per input and kernel call.
  Target into(Value input);
  // Like into(), for the first contribution only: the gradient takes over the storage of `storage` (same type), which no
  // later call may read. If there is a contribution already, or if the gradient has another dtype than its value, this is
  // into().
  Target into_storage_of(Value input, Value storage);
  // Like into(), for a first contribution that equals the gradient that `storage` holds for another value. From now on both
  // are one tensor; if one of them is added to, it gets a copy of its own. Returns whether that was done, so that nothing is
  // left to write. If it returns false, call into().
  bool share(Value input, Value storage);
  bool needed(Value input) const;
  Graph& graph() const;

 private:
  // Whether an existing tensor may serve as the first contribution to the input's gradient.
  bool takes_storage(Value input) const;

  Tape& tape_;
};

// Records backward rules while a graph is built. With `differentiate` false it only gives access to the Graph, so that
// training and evaluation share every op's code.
class Tape {
 public:
  Tape(Graph& graph, bool differentiate, FusedKernels fused = {})
      : graph_(graph), differentiate_(differentiate), fused_(fused) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Graph& graph() { return graph_; }
  bool differentiating() const { return differentiate_; }
  // The fused kernels that ops may use in place of several plain calls.
  const FusedKernels& fused() const { return fused_; }

  // Declares a leaf: contributions to the gradient of `leaf` are added to `gradient` (same shape, f32,
  // external), which the caller zeroes. Views of `leaf` write into the same part of `gradient`.
  void watch(Value leaf, Value gradient);

  // Keeps the gradient of the computed `value` in `dtype` instead of its own: f32 for sums over many matmuls of a bf16 value.
  // Call it before backward().
  void keep_gradient_in(Value value, DType dtype);

  // Whether `value` is, or was computed from, a watched leaf.
  bool needs_gradient(Value value) const;

  // Ops call this after their forward calls. `rule` emits the backward calls. It runs only if one of `inputs` leads to a
  // watched leaf and one of `outputs` has a gradient.
  void record(std::vector<Value> outputs, std::vector<Value> inputs, std::function<void(Backward&)> rule);

  // An input with a gradient that a backward kernel computes. `name`, for example "dx": the kernel has the attribute
  // accumulate_dx (Backward::Target::accumulate). Null: the kernel always adds.
  struct Gradient {
    Value input;
    const char* name = nullptr;
  };
  // Calls the kernel OP_fwd with `inputs` and `outputs`. The recorded rule calls OP_bwd with `inputs`, the gradients of
  // `outputs`, and `gradients`. Both kernels get `attributes`.
  void call(const std::string& op, const std::vector<Value>& inputs, const std::vector<Value>& outputs,
            const std::vector<Attribute>& attributes, const std::vector<Gradient>& gradients);
  // The same with one output, a new tensor of the first input's type, which is returned. `hint` is its name.
  Value call(const std::string& op, const std::vector<Value>& inputs, std::string_view hint,
             const std::vector<Attribute>& attributes, const std::vector<Gradient>& gradients);

  // The first input of the op whose last forward call is number `call`, if the op has put down a rule.
  std::optional<Value> input_of(std::size_t call) const;
  // Records the forward calls again in their order, each with its rule. If replaced[at] is set, it records its calls in place
  // of call `at`. Call it before backward().
  void rewrite(const std::map<std::size_t, std::function<void()>>& replaced);

  // Emits the backward calls for the objective whose gradient with respect to `output` is `seed`.
  void backward(Value output, Value seed);

 private:
  friend class Backward;
  struct Entry {
    std::vector<Value> outputs;
    std::vector<Value> inputs;
    std::function<void(Backward&)> rule;
    std::size_t calls;  // of the graph at that time; the op's forward calls are the last of them
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
