// A Graph made executable on a backend: every call prepared once, every address fixed, run as a flat list.
#pragma once

#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/graph/tensor_store.h"

namespace mulligan {

// Static memory planning: where each scratch value of a Graph lies in one arena.

// A kernel may read past no tensor's end, but vector loads like aligned starts.
inline constexpr std::int64_t arena_alignment = 256;

struct MemoryPlan {
  // Byte offset in the arena by value id (index 0 unused); -1 for externals, views and unmentioned values.
  std::vector<std::int64_t> offset;
  std::int64_t arena_bytes = 0;
  // Sum of all scratch values: what the arena would need without reuse.
  std::int64_t unshared_bytes = 0;
};

// Packs scratch values by liveness: two values share bytes only if no call mentions the one between the
// first and the last mention of the other. Largest first, each at the lowest offset that is free during
// its life. Deterministic.
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
  // Of the prepared calls, in the order of graph().calls(): what the backend is given to run.
  const std::vector<void*>& handles() const { return handles_; }

  // Fixes all addresses: externals from `store` (all must exist), scratch in `arena`, kernels' workspace.
  // Programs that never run at the same time may share arena and workspace.
  void bind(const TensorStore& store, void* arena, void* workspace);

  // Enqueues all calls. Neither allocates nor waits. A kernel that fails is a run_error naming program, call,
  // kernel and the plugin that brings it.
  void run();
  // Enqueues the calls [begin, end). Parts of one run, in order and without a run of another program that
  // shares the arena in between, equal run().
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

// Scratch memory that several programs share: as large as the largest of them needs.
class SharedArena {
 public:
  explicit SharedArena(Backend& backend) : backend_(backend) {}
  // Binds all programs to one arena and one workspace; allocates them.
  void bind(const std::vector<Program*>& programs, const TensorStore& store);
  std::int64_t bytes() const { return bytes_; }

 private:
  Backend& backend_;
  DeviceBuffer arena_, workspace_;
  std::int64_t bytes_ = 0;
};

}  // namespace mulligan
