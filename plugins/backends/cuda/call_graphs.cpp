#include "plugins/backends/cuda/call_graphs.h"

#include <algorithm>

#include "plugins/backends/cuda/calls/device_call.h"

namespace mulligan::cuda {
namespace {

void run_each(std::span<void* const> calls) {
  for (void* call : calls) static_cast<DeviceCall*>(call)->run();
}

}  // namespace

std::unique_ptr<CapturedGraph> CallGraphs::capture(std::span<void* const> calls) {
  device_.begin_capture();
  try {
    run_each(calls);
    std::unique_ptr<CapturedGraph> graph = device_.end_capture();
    ++captures_;
    return graph;
  } catch (...) {
    device_.abandon_capture();
    throw;
  }
}

void CallGraphs::run(std::span<void* const> calls) {
  if (!enabled_ || calls.size() < kFewest) return run_each(calls);
  choices_.clear();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (const std::uint64_t choice = static_cast<DeviceCall*>(calls[i])->choice())
      choices_.emplace_back(i, choice);
  }
  Entry& entry = captured_[{calls.data(), calls.size()}];
  if (!std::equal(entry.calls.begin(), entry.calls.end(), calls.begin(), calls.end())) {
    entry.graphs.clear();
    entry.calls.assign(calls.begin(), calls.end());
  }
  const auto known = entry.graphs.find(choices_);
  if (known == entry.graphs.end()) {
    run_each(calls);
    entry.graphs.emplace(choices_, nullptr);
    return;
  }
  if (!known->second) known->second = capture(calls);
  device_.launch(*known->second);
}

void CallGraphs::forget() {
  if (captured_.empty()) return;
  device_.synchronize();
  captured_.clear();
}

}  // namespace mulligan::cuda
