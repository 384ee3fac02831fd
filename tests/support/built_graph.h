// A small graph of ops between external tensors, and its run on the cpu backend: for tests of passes.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/core/philox.h"
#include "framework/graph/program.h"
#include "framework/graph/tape.h"
#include "tests/support/plugins.h"

namespace mulligan {

inline Backend& cpu() {
  static const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  return *backend;
}

struct BuiltGraph {
  explicit BuiltGraph(bool differentiate = false) : tape(graph, differentiate, FusedKernels(cpu())) {}

  // An external that is trained: its gradient is the external "dNAME".
  Value trained(const std::string& name, const TensorType& type) {
    const Value leaf = graph.external(name, type);
    tape.watch(leaf, graph.external("d" + name, type));
    return leaf;
  }
  void read(Value value, const char* to) {
    graph.call("cast", {value, graph.external(to, graph.type(value))});
  }
  std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    for (const Call& call : graph.calls()) names.push_back(call.kernel);
    return names;
  }
  const Call& only(const std::string& kernel) const {
    const auto found = std::ranges::find(graph.calls(), kernel, &Call::kernel);
    if (found == graph.calls().end()) throw std::logic_error("no " + kernel);
    return *found;
  }

  Graph graph;
  Tape tape;
};
using Kernels = std::vector<std::string>;

// Runs a graph on the cpu backend with random externals and returns all of them.
inline std::map<std::string, std::vector<float>> run(Graph graph) {
  TensorStore store(cpu());
  store.create_externals(graph);
  for (const std::string& name : store.names()) {
    std::vector<float> values(static_cast<std::size_t>(store.type(name).elements()));
    const PhiloxStream noise(3, name);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(noise.normal(i));
    store.upload(name, values);
  }
  Program program(cpu(), std::move(graph), "test");
  SharedArena arena(cpu());
  arena.bind({&program}, store);
  program.run();
  std::map<std::string, std::vector<float>> result;
  for (const std::string& name : store.names()) result[name] = store.download_as<float>(name);
  return result;
}

}  // namespace mulligan
