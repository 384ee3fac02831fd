#include "tests/gpu_device/stub/cudnn_rules.h"

#include <algorithm>

#include "tests/stub/stub.h"

namespace stub_cudnn {
namespace {

constexpr const char* kCall = "cudnnBackendExecute";

std::size_t element_bytes(cudnnDataType_t type) {
  return type == CUDNN_DATA_BFLOAT16 || type == CUDNN_DATA_HALF ? 2 : type == CUDNN_DATA_BOOLEAN ? 1 : 4;
}

Tensor tensor_of(const Descriptor& d) {
  Tensor tensor;
  tensor.id = d.values<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID).at(0);
  tensor.extents = d.values<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  tensor.strides = d.values<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  tensor.type = d.values<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE).at(0);
  tensor.alignment = d.values<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT).at(0);
  tensor.is_number = d.attributes.contains(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  tensor.in_memory = !tensor.is_number && !d.attributes.contains(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  for (const Descriptor* starts : d.held(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC))
    tensor.starts = tensor_of(*starts).id;
  return tensor;
}

constexpr cudnnBackendAttributeName_t kOperands[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                     CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                                                     CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                     CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
                                                     CUDNN_ATTR_OPERATION_MATMUL_ADESC,
                                                     CUDNN_ATTR_OPERATION_MATMUL_BDESC,
                                                     CUDNN_ATTR_OPERATION_MATMUL_CDESC,
                                                     CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
                                                     CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
                                                     CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC,
                                                     CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
                                                     CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
                                                     CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                                                     CUDNN_ATTR_OPERATION_RESHAPE_YDESC};

bool is_length(cudnnBackendAttributeName_t name) {
  return name == CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC ||
         name == CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC ||
         name == CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC;
}

// The id of an operand; 0: there is none.
std::int64_t id_of(const Descriptor& operation, cudnnBackendAttributeName_t name) {
  const std::vector<Descriptor*> operand = operation.held(name);
  return operand.empty() ? 0 : tensor_of(*operand[0]).id;
}

Operation operation_of(const Descriptor& d) {
  using enum Operation::Kind;
  const auto id = [&](cudnnBackendAttributeName_t name) { return id_of(d, name); };
  Operation one;
  switch (d.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
      const Descriptor& how = *d.held(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR).at(0);
      one.kind = pointwise;
      one.mode = how.values<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE).at(0);
      for (const std::int64_t axis : how.values<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS)) one.axis = axis;
      one.x = id(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
      one.y = id(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
      one.b = id(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
      one.t = id(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
      break;
    }
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      one.kind = matmul;
      one.x = id(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
      one.b = id(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
      one.y = id(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
      one.m = id(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC);
      one.n = id(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC);
      one.k = id(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC);
      break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: {
      const Descriptor& how = *d.held(CUDNN_ATTR_OPERATION_REDUCTION_DESC).at(0);
      one.kind = reduction;
      one.mode = how.values<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR).at(0);
      one.x = id(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
      one.y = id(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
      break;
    }
    default:
      one.kind = reshape;
      one.x = id(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
      one.y = id(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  }
  return one;
}

// Whether a matmul of packed sequences has lengths for just the axes that count tokens.
bool takes_lengths(const Graph& graph, const Operation& matmul) {
  const auto counts = [&](std::int64_t id, std::size_t axis) {
    return graph.tensors.at(id).extents[axis] == graph.longest();
  };
  return counts(matmul.y, 2) == (matmul.m != 0) && counts(matmul.y, 3) == (matmul.n != 0) &&
         counts(matmul.x, 3) == (matmul.k != 0);
}

std::string name_of(const Tensor& tensor) {
  return "tensor " + std::to_string(tensor.id);
}

// Elements from the first of `extents` to the end of the last.
std::int64_t elements(const Tensor& tensor, std::size_t first_axis) {
  std::int64_t last = 0;
  for (std::size_t axis = first_axis; axis < tensor.extents.size(); ++axis)
    last += (tensor.extents[axis] - 1) * tensor.strides[axis];
  return last + 1;
}

bool violates(const std::string& what) {
  stub_violates((std::string(kCall) + ": " + what).c_str());
  return false;
}

// Rows of a packed tensor end where the next ones start.
bool judge_ragged(const Tensor& tensor, const Tensor& starts_tensor, const Addresses& addresses) {
  const auto rows = static_cast<std::size_t>(tensor.extents[0]);
  if (starts_tensor.extents[0] != tensor.extents[0] + 1)
    return violates("argument " + name_of(starts_tensor) + " has not one start more than " + name_of(tensor) +
                    " has rows");
  std::vector<std::int32_t> starts(rows + 1);
  std::memcpy(starts.data(), addresses.at(starts_tensor.id), starts.size() * sizeof(std::int32_t));
  for (std::size_t row = 0; row < rows; ++row) {
    if (starts[row] < 0 || starts[row + 1] < starts[row])
      return violates("argument " + name_of(starts_tensor) + ": row " + std::to_string(row) + " starts at " +
                      std::to_string(starts[row]) + " and the next one at " +
                      std::to_string(starts[row + 1]));
  }
  const auto bytes = static_cast<std::size_t>(starts[rows]) * element_bytes(tensor.type);
  return bytes == 0 || stub_touches(kCall, name_of(tensor).c_str(), addresses.at(tensor.id), bytes);
}

bool judge_tensor(const Graph& graph, const Tensor& tensor, const Addresses& addresses) {
  const char* address = addresses.at(tensor.id);
  if (!address) return violates("argument " + name_of(tensor) + " has no address");
  if (tensor.is_number) return true;  // of the host
  if (reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(tensor.alignment) != 0)
    return violates("argument " + name_of(tensor) + " is not aligned to " + std::to_string(tensor.alignment) +
                    " bytes");
  if (tensor.starts != 0) return judge_ragged(tensor, graph.tensors.at(tensor.starts), addresses);
  return stub_touches(kCall, name_of(tensor).c_str(), address,
                      static_cast<std::size_t>(elements(tensor, 0)) * element_bytes(tensor.type));
}

}  // namespace

std::int64_t Graph::longest() const {
  std::int64_t most = 0;
  for (const auto& [id, tensor] : tensors) {
    if (tensor.in_memory && tensor.type != CUDNN_DATA_INT32)
      most = std::max({most, tensor.extents[2], tensor.extents[3]});
  }
  return most;
}

Graph graph_of(const Descriptor& operations) {
  Graph graph;
  for (const Descriptor* operation : operations.held(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    graph.operations.push_back(operation_of(*operation));
    for (const cudnnBackendAttributeName_t name : kOperands) {
      for (const Descriptor* operand : operation->held(name)) {
        const Tensor tensor = tensor_of(*operand);
        graph.tensors[tensor.id] = tensor;
        for (const Descriptor* starts : operand->held(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC))
          graph.tensors[tensor.starts] = tensor_of(*starts);
        if (is_length(name)) graph.lengths.push_back(tensor.id);
        if (name == CUDNN_ATTR_OPERATION_MATMUL_ADESC && tensor.in_memory)
          graph.widest_head = std::max(graph.widest_head, tensor.extents.back());
      }
    }
  }
  return graph;
}

std::string unsupported_in(const Graph& graph) {
  if (graph.widest_head > 128 || graph.widest_head % 8 != 0)
    return "heads of width " + std::to_string(graph.widest_head) + " are not supported";
  for (const auto& [id, tensor] : graph.tensors) {
    if (tensor.starts != 0 && graph.lengths.empty()) return "packed rows need a padding mask";
    if (tensor.extents.size() != 4) return name_of(tensor) + " has not four axes";
  }
  for (const Operation& one : graph.operations) {
    if (graph.is_packed() && one.kind == Operation::Kind::matmul && !takes_lengths(graph, one))
      return "a matmul over packed rows is not told which of its extents are those of a row";
  }
  return {};
}

bool judge_names(const Graph& graph, const Descriptor& pack, Execution& execution) {
  const auto ids = pack.values<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.values<const char*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  for (std::size_t i = 0; i < ids.size() && i < pointers.size(); ++i) {
    if (!graph.tensors.contains(ids[i]))
      return violates("argument tensor " + std::to_string(ids[i]) + " is none of the graph");
    if (!execution.addresses.emplace(ids[i], pointers[i]).second)
      return violates("argument tensor " + std::to_string(ids[i]) + " is named twice");
  }
  for (const auto& [id, tensor] : graph.tensors) {
    if ((tensor.in_memory || tensor.is_number) && !execution.addresses.contains(id))
      return violates("argument " + name_of(tensor) + " is missing");
  }
  const auto workspace = pack.values<const char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (!workspace.empty()) execution.workspace = workspace[0];
  return true;
}

bool judge_memory(const Graph& graph, const Execution& execution) {
  std::vector<const Tensor*> named;
  for (const auto& [id, tensor] : graph.tensors) {
    if (tensor.in_memory || tensor.is_number) named.push_back(&tensor);
  }
  // Starts first: the extents of others follow from them.
  std::ranges::stable_sort(named, {}, [](const Tensor* tensor) { return tensor->starts != 0; });
  for (const Tensor* tensor : named) {
    if (!judge_tensor(graph, *tensor, execution.addresses)) return false;
  }
  return graph.workspace == 0 ||
         stub_touches(kCall, "workspace", execution.workspace, static_cast<std::size_t>(graph.workspace));
}

}  // namespace stub_cudnn
