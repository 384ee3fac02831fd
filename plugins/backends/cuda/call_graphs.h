// Lists of calls that are run again and again, as captured graphs: the first run of a list is eager
// (libraries load their code then), the second one is captured, later ones launch the capture. A list has a
// capture for each way that its calls take (DeviceCall::choice()).
#pragma once

#include <cstdint>
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

  // Enqueues the calls (DeviceCall*), in order. Throws when one was not bound.
  void run(std::span<void* const> calls);
  // Addresses changed, or a call is gone: captures no longer hold. Waits for those that still run.
  void forget();
  std::uint64_t captures() const { return captures_; }  // that were made so far

 private:
  using Choices = std::vector<std::pair<std::size_t, std::uint64_t>>;  // which call, what it chose; not zeros
  struct Entry {
    std::vector<void*> calls;
    std::map<Choices, std::unique_ptr<CapturedGraph>> graphs;  // null: run once, not captured yet
  };
  std::unique_ptr<CapturedGraph> capture(std::span<void* const> calls);

  static constexpr std::size_t kFewest = 4;  // calls that are worth a graph

  Device& device_;
  bool enabled_;
  std::uint64_t captures_ = 0;
  std::map<std::pair<const void*, std::size_t>, Entry> captured_;  // by where the list lies, and its length
  Choices choices_;                                                // of the running list
};

}  // namespace mulligan::cuda
