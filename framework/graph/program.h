// A Graph made executable on a backend: every call is prepared once, every address is fixed, and the flat list is run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/graph/tensor_store.h"

namespace mulligan {

// Static memory planning: the place of each scratch value of a Graph in one arena.

// No kernel reads past a tensor's end, but vector loads prefer aligned starts.
inline constexpr std::int64_t arena_alignment = 256;

struct MemoryPlan {
  // Byte offset in the arena by value id (index 0 unused); -1 for externals, views and unmentioned values.
  std::vector<std::int64_t> offset;
  std::int64_t arena_bytes = 0;
};

// Packs scratch values by liveness: two values share bytes only if no call mentions the one between the first and the last
// mention of the other. The largest value comes first; each takes the lowest offset that is free during its life.
// Deterministic.
MemoryPlan plan_memory(const Graph& graph);

class Program {
 public:
  // Prepares every call of `graph`. Errors of the backend become run_error, naming the program
  // and the kernel.
  Program(Backend& backend, Graph graph, std::string name);
  Program(Program&&) noexcept = default;
  Program& operator=(Program&&) = delete;

  std::int64_t arena_bytes() const { return plan_.arena_bytes; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  const MemoryPlan& plan() const { return plan_; }
  const Graph& graph() const { return graph_; }
  const std::string& name() const { return name_; }
  // The prepared calls in the order of graph().calls(), as the backend runs them.
  const std::vector<void*>& handles() const { return handles_; }

  // Fixes all addresses: externals from `store` (all must exist), scratch in `arena`, kernels' workspace.
  // Programs that never run at the same time may share arena and workspace.
  void bind(const TensorStore& store, void* arena, void* workspace);

  // Enqueues all calls. Neither allocates nor waits. If a kernel fails, throws run_error that names program, call, kernel and
  // the kernel's plugin.
  void run();
  // Enqueues the calls [begin, end). The parts of one run equal run() if they come in order, and if no program that shares
  // the arena runs in between.
  void run_range(std::size_t begin, std::size_t end);

  // Runs call by call with a synchronisation after each; returns the seconds of each call, in the
  // order of graph().calls().
  std::vector<double> run_profiled();

 private:
  void require_bound() const;
  void run_calls(std::size_t begin, std::size_t count);

  Backend* backend_;
  Graph graph_;
  std::string name_;
  MemoryPlan plan_;
  std::int64_t workspace_bytes_ = 0;
  std::vector<PreparedCall> prepared_;
  std::vector<void*> handles_;  // of prepared_, as Backend::run takes them
  bool bound_ = false;
};

// A program on the backend of `store`, in which it makes the externals of `graph`.
std::unique_ptr<Program> make_program(TensorStore& store, Graph graph, std::string name);

// Scratch memory that several programs share; it is as large as the largest need.
class SharedArena {
 public:
  explicit SharedArena(Backend& backend) : backend_(backend) {}
  // Binds all programs to one arena and one workspace; allocates them.
  void bind(const std::vector<Program*>& programs, const TensorStore& store);

 private:
  Backend& backend_;
  DeviceBuffer arena_, workspace_;
};

}  // namespace mulligan
