// What cuDNN's stand-in knows of graphs, and how it judges them.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace stand_in_cudnn {

struct Tensor {
  std::int64_t id = 0;
  std::vector<std::int64_t> extents, strides;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t alignment = 0;  // bytes
  bool in_memory = true;       // neither virtual nor a number
  bool is_number = false;
  std::int64_t starts = 0;  // id of the tensor with the starts of its rows; 0: none
};

struct Graph {
  std::map<std::int64_t, Tensor> tensors;  // by id
  std::vector<std::int64_t> lengths;       // ids that override extents of products
  std::int64_t widest_head = 0;            // last extent of what a product reads in memory
  std::int64_t workspace = 0;              // of the plan
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
// Whether a variant pack names each tensor once, all of it in one live allocation of the device, with as much
// workspace as the plan asks for; where not, the stand-in has a violation.
bool judge_execution(const Graph& graph, const Descriptor& pack);

}  // namespace stand_in_cudnn
