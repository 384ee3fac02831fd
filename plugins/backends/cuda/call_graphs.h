// Lists of calls that are run again and again, as captured graphs: the first run of a list is eager
// (libraries load their code then), the second one is captured, later ones launch the capture.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

class CallGraphs {
 public:
  // Not `enabled`: every run is eager.
  CallGraphs(Device& device, bool enabled) : device_(device), enabled_(enabled) {}

  // Enqueues the calls (PreparedCall*), in order. Throws when one was not bound.
  void run(std::span<void* const> calls);
  // Addresses changed, or a call is gone: captures no longer hold.
  void forget() { captured_.clear(); }

 private:
  struct Entry {
    std::vector<void*> calls;
    std::unique_ptr<CapturedGraph> graph;
  };
  static constexpr std::size_t kFewest = 4;  // calls that are worth a graph

  Device& device_;
  bool enabled_;
  std::map<std::pair<const void*, std::size_t>, Entry> captured_;  // by where the list lies, and its length
};

}  // namespace mulligan::cuda
