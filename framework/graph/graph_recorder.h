// The recorder for losses and optimisers; it writes into a Graph.
#pragma once

#include <mulligan/recorder.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "framework/graph/call_access.h"
#include "framework/graph/graph.h"
#include "framework/plugin/optimizer.h"

namespace mulligan {

// The table of functions by which a plugin records into a Graph. Exceptions must not cross into the plugin: they become the sentence
// that the plugin hands back to us.
class PluginRecorder {
 public:
  PluginRecorder(const PluginRecorder&) = delete;
  PluginRecorder& operator=(const PluginRecorder&) = delete;
  const mlg_recorder* table() const { return &table_; }
  // From now on the plugin may name only `values`, those of earlier calls of this, and its own values. Before the first call
  // it may name every value.
  void restrict_to(std::span<const Value> values);

 protected:
  // `name`: for messages. `hint`: of scratch values.
  explicit PluginRecorder(std::string name, const char* hint = "");
  virtual ~PluginRecorder() = default;
  // All throw run_error for what the plugin may not do.
  virtual Graph& graph() = 0;
  virtual Value state(const char* name, const TensorType& type, bool survives_warmup) = 0;
  virtual void check_view(Value, std::int64_t, const TensorType&) {}
  virtual void record(Call call) = 0;

  const std::string name_;

 private:
  template <typename Body>
  static mlg_error guarded(void* self, Body&& body);
  Value known(mlg_value value) const;
  mlg_value made(Value value);  // the plugin's own value

  const char* hint_;
  std::string error_;
  mlg_recorder table_{};
  std::optional<std::set<std::uint32_t>> allowed_;  // absent: all
};

class GraphRecorder final : public PluginRecorder {
 public:
  // States become externals named "<state_prefix>/<name>". A call of symmetric_matmul, a special case of matmul, becomes a
  // call of matmul if `fused` lacks it. If `fused` has matmul_add, a copy and the matmuls that directly follow it become
  // fused calls, provided that the matmuls add to parts that make up the whole copy. The graph is complete when the
  // recorder is destroyed.
  GraphRecorder(Graph& graph, std::string state_prefix, FusedKernels fused = {});
  ~GraphRecorder() override { write_copy(); }

  // Externals made through state(), in the order of the requests; checkpoints keep them and warm-up restores them. Throws
  // run_error if no call names one of them, since it would only take memory.
  const std::vector<std::string>& states() const;
  // Those that were declared to survive warm-up.
  const std::set<std::string>& surviving() const { return surviving_; }

 private:
  Graph& graph() override { return graph_; }
  Value state(const char* name, const TensorType& type, bool survives_warmup) override;
  void record(Call call) override;
  bool is_copy(const Call& call) const;         // a copy that matmuls can be merged with
  bool adds_to_copy(const Call& matmul) const;  // to a part of the held-back copy, as the first call to do so
  bool is_whole() const;                        // the held-back matmuls add to all of the copy
  void write_matmuls();
  void write_copy();

  Graph& graph_;
  FusedKernels fused_;
  std::vector<std::string> states_;
  std::map<mlg_value, std::string> state_values_;
  std::set<std::uint32_t> named_;  // roots of the calls' arguments
  std::set<std::string> surviving_;
  std::optional<Call> copy_;   // held back until the matmuls that add to it are known
  std::vector<Call> matmuls_;  // held back with it
};

// Checks what a plugin would record. It is recorded into a separate graph first, because only then the names of the fused
// kernels that it uses are known.

// Whether graphs may use every kernel that `trial` calls.
bool have_kernels_of(const FusedKernels& fused, const Graph& trial);

// Whether updates of a parameter of this type (with its master's dtype) may be recorded with all that
// mlg_update offers. An optimiser that refuses the parameter throws when its update is recorded.
bool can_fuse_update(const FusedKernels& fused, const Optimizer& optimizer, const TensorType& parameter);

}  // namespace mulligan
