#include "plugins/backends/cuda/call_graphs.h"

#include <algorithm>

#include "plugins/backends/cuda/prepared_call.h"

namespace mulligan::cuda {
namespace {

void run_each(std::span<void* const> calls) {
  for (void* call : calls) static_cast<PreparedCall*>(call)->run();
}

}  // namespace

void CallGraphs::run(std::span<void* const> calls) {
  if (!enabled_ || calls.size() < kFewest) return run_each(calls);
  Entry& entry = captured_[{calls.data(), calls.size()}];
  if (!std::equal(entry.calls.begin(), entry.calls.end(), calls.begin(), calls.end())) {
    entry.graph.reset();
    entry.calls.assign(calls.begin(), calls.end());
    return run_each(calls);
  }
  if (!entry.graph) {
    device_.begin_capture();
    try {
      run_each(calls);
    } catch (...) {
      device_.end_capture();
      throw;
    }
    entry.graph = device_.end_capture();
  }
  device_.launch(*entry.graph);
}

}  // namespace mulligan::cuda
