// The recorder that losses and optimisers see, writing into a Graph.
#pragma once

#include <mulligan/recorder.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "framework/graph/fused_kernels.h"
#include "framework/graph/graph.h"
#include "framework/plugin/optimizer.h"

namespace mulligan {

class GraphRecorder {
 public:
  // States become externals named "<state_prefix>/<name>". Calls of symmetric_matmul, a special case of
  // matmul, become calls of matmul where `fused` has it not. A copy becomes one call
  // with each of the matmuls that follow it at once, where they add to parts of it that make up the whole and
  // `fused` has matmul_add; the graph is complete when the recorder is gone.
  GraphRecorder(Graph& graph, std::string state_prefix, FusedKernels fused = {});
  ~GraphRecorder() { write_copy(); }
  GraphRecorder(const GraphRecorder&) = delete;
  GraphRecorder& operator=(const GraphRecorder&) = delete;

  // From now on the plugin may name `values` and what it makes itself, nothing else of the graph. Without a
  // call of this every value may be named.
  void restrict_to(std::span<const Value> values);

  const mlg_recorder* table() const { return &table_; }
  // Externals made through state(), in the order of the requests: what checkpoints keep and warm-up restores.
  // Throws run_error where no call names one of them: it would only take memory.
  const std::vector<std::string>& states() const;
  // Those of them that were declared to survive warm-up.
  const std::set<std::string>& surviving() const { return surviving_; }

 private:
  template <typename Body>
  static mlg_error guarded(void* self, Body&& body);
  std::string usable(const char* kernel) const;
  void record(Call call);
  bool is_copy(const Call& call) const;         // that matmuls may take in
  bool adds_to_copy(const Call& matmul) const;  // to a part of the one that is held back, as the first
  bool is_whole() const;                        // the matmuls that are held back add to all of the copy
  void write_matmuls();
  void write_copy();
  Value known(mlg_value value) const;
  mlg_value made(Value value);

  Graph& graph_;
  std::string prefix_;
  FusedKernels fused_;
  std::vector<std::string> states_;
  std::map<mlg_value, std::string> state_values_;
  std::set<std::uint32_t> named_;  // roots of the calls' arguments
  std::set<std::string> surviving_;
  std::optional<std::set<std::uint32_t>> allowed_;  // absent: all
  std::optional<Call> copy_;                        // held back until it is known what adds to it
  std::vector<Call> matmuls_;                       // held back with it
  std::string error_;
  mlg_recorder table_{};
};

// Whether what a plugin would record can be used: it is recorded into a graph of its own first, for the fused
// kernels of a plugin are known by name only then.

// Whether graphs may use every kernel that `trial` calls.
bool have_kernels_of(const FusedKernels& fused, const Graph& trial);

// Whether updates of a parameter of this type (with its master's dtype) may be recorded with all that
// mlg_update offers. An optimiser that refuses the parameter throws when its update is recorded.
bool can_fuse_update(const FusedKernels& fused, const Optimizer& optimizer, const TensorType& parameter);

}  // namespace mulligan
