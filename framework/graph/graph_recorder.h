// The recorder that losses and optimisers see, writing into a Graph.
#pragma once

#include <mulligan/recorder.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/graph/graph.h"

namespace mulligan {

class GraphRecorder {
 public:
  // States become externals named "<state_prefix>/<name>".
  GraphRecorder(Graph& graph, std::string state_prefix);
  GraphRecorder(const GraphRecorder&) = delete;
  GraphRecorder& operator=(const GraphRecorder&) = delete;

  const mlg_recorder* table() const { return &table_; }
  // Externals made through state(), in the order of the requests: what checkpoints keep and warm-up restores.
  const std::vector<std::string>& states() const { return states_; }

 private:
  template <typename Body>
  static mlg_error guarded(void* self, Body&& body);

  Graph& graph_;
  std::string prefix_;
  std::vector<std::string> states_;
  std::string error_;
  mlg_recorder table_{};
};

}  // namespace mulligan
