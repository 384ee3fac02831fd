#include "plugins/backends/cuda/gpu/cudnn/graph.h"

#include <utility>

namespace mulligan::cuda::cudnn {
namespace {

constexpr std::int64_t kGraphAlignment = 16;          // bytes
constexpr auto kPlain = CUDNN_ATTR_TENSOR_UNIQUE_ID;  // neither virtual nor by value: nothing to set

}  // namespace

Graph::Tensor Graph::tensor(std::int64_t id, const TensorSpec& spec, Tensor starts,
                            cudnnBackendAttributeName_t kind) {
  Descriptor& d = descriptors_.emplace_back(functions_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, spec.type);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(spec.extents));
  d.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(spec.strides));
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kGraphAlignment);
  if (kind != kPlain) d.set(kind, true);
  if (starts) d.set(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, *starts);
  d.finalize();
  return &d;
}

Graph::Tensor Graph::memory(std::int64_t id, const TensorSpec& spec, Tensor starts) {
  return tensor(id, spec, starts, kPlain);
}

Graph::Tensor Graph::number(std::int64_t id) {
  return tensor(id, {{1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT}, nullptr, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
}

Graph::Tensor Graph::between(const TensorSpec& spec, Tensor starts) {
  return tensor(next_id_++, spec, starts, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

void Graph::operation(Descriptor descriptor) {
  descriptor.finalize();
  operations_.push_back(&descriptors_.emplace_back(std::move(descriptor)));
}

void Graph::add(const Pointwise& p) {
  Descriptor& how = descriptors_.emplace_back(functions_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, p.mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, p.precision);
  if (p.axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, p.axis);
  how.finalize();
  Descriptor d(functions_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *p.x);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *p.y);
  if (p.b) d.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *p.b);
  if (p.t) d.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *p.t);
  operation(std::move(d));
}

void Graph::add(const Matmul& m) {
  Descriptor& how = descriptors_.emplace_back(functions_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  how.finalize();
  Descriptor d(functions_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *m.a);
  d.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *m.b);
  d.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *m.c);
  d.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  if (m.m) d.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, *m.m);
  if (m.n) d.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, *m.n);
  if (m.k) d.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, *m.k);
  operation(std::move(d));
}

void Graph::reduce(cudnnReduceTensorOp_t operation_of, Tensor x, Tensor y) {
  Descriptor& how = descriptors_.emplace_back(functions_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, operation_of);
  how.finalize();
  Descriptor d(functions_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  d.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x);
  d.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y);
  operation(std::move(d));
}

void Graph::reshape(Tensor x, Tensor y) {
  Descriptor d(functions_, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x);
  d.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *y);
  operation(std::move(d));
}

Descriptor Graph::finish(cudnnHandle_t handle) const {
  Descriptor graph(functions_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor* const>(operations_));
  if (handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph.finalize();
  return graph;
}

}  // namespace mulligan::cuda::cudnn
