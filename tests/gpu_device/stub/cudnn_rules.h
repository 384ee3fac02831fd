// What cuDNN's stub knows of graphs, and how it judges them.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace stub_cudnn {

struct Tensor {
  std::int64_t id = 0;
  std::vector<std::int64_t> extents, strides;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t alignment = 0;  // bytes
  bool in_memory = true;       // neither virtual nor a number
  bool is_number = false;
  std::int64_t starts = 0;  // id of the tensor with the starts of its rows; 0: none
};

// Of one kind of operation, by what its operands are called there; 0: absent.
struct Operation {
  enum class Kind { pointwise, matmul, reduction, reshape } kind = Kind::pointwise;
  int mode = 0;            // cudnnPointwiseMode_t, or cudnnReduceTensorOp_t
  std::int64_t axis = -1;  // that an index counts along
  std::int64_t x = 0, y = 0, b = 0, t = 0;
  std::int64_t m = 0, n = 0, k = 0;  // of a matmul y = x b: tensors with the extents that each row has
};

struct Graph {
  std::map<std::int64_t, Tensor> tensors;  // by id
  std::vector<Operation> operations;       // in their order
  std::vector<std::int64_t> lengths;       // ids that override extents of matmuls
  std::int64_t widest_head = 0;            // last extent of what a matmul reads in memory
  std::int64_t workspace = 0;              // of the plan

  bool is_packed() const { return !lengths.empty(); }
  // The most tokens that a row has: the longest extent, so that an axis of that extent counts tokens.
  std::int64_t longest() const;
};

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<cudnnBackendAttributeName_t, std::string> attributes;  // bytes
  std::shared_ptr<Graph> graph;  // of graphs, heuristics, engines and plans, once they are finalised

  template <typename T>
  std::vector<T> values(cudnnBackendAttributeName_t name) const {
    std::vector<T> found;
    const auto known = attributes.find(name);
    if (known == attributes.end()) return found;
    found.resize(known->second.size() / sizeof(T));
    std::memcpy(found.data(), known->second.data(), found.size() * sizeof(T));
    return found;
  }
  std::vector<Descriptor*> held(cudnnBackendAttributeName_t name) const { return values<Descriptor*>(name); }
};

Graph graph_of(const Descriptor& operations);
// Why attention's engines do not take the graph; empty where they do.
std::string unsupported_in(const Graph& graph);
// What an execution is told of memory, by id.
using Addresses = std::map<std::int64_t, const char*>;
struct Execution {
  Addresses addresses;
  const char* workspace = nullptr;
};

// Whether a variant pack names each tensor once; if not, the stub records a violation.
bool judge_names(const Graph& graph, const Descriptor& pack, Execution& execution);
// Whether one live allocation of the device holds all of each tensor, and another as much workspace as the plan asks
// for; if not, the stub records a violation. Reads where packed rows start.
bool judge_memory(const Graph& graph, const Execution& execution);

}  // namespace stub_cudnn
