// A graph of cuDNN operations, made one operation after another.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "plugins/backends/cuda/gpu/cudnn/descriptor.h"

namespace mulligan::cuda::cudnn {

using Extents = std::array<std::int64_t, 4>;

struct TensorSpec {
  Extents extents, strides;  // in elements
  cudnnDataType_t type;
};

class Graph {
 public:
  using Tensor = const Descriptor*;  // lives as long as the graph; null: absent

  explicit Graph(const Functions& functions) : functions_(functions) {}

  // A tensor in memory, which an execution names by `id` (1 to 999). `starts`: [rows + 1, 1, 1, 1] int32,
  // where the rows of a packed tensor start, in elements; extents[2] is then the most that a row may have.
  Tensor memory(std::int64_t id, const TensorSpec& spec, Tensor starts = nullptr);
  // An f32 number that an execution names by `id` and hands over from the host.
  Tensor number(std::int64_t id);
  // A tensor that only leads from one operation to another.
  Tensor between(const TensorSpec& spec, Tensor starts = nullptr);

  // y = mode(x, b), or mode(x, b, t): BINARY_SELECT takes x where t holds and b elsewhere. `axis` is what
  // GEN_INDEX counts along.
  struct Pointwise {
    cudnnPointwiseMode_t mode;
    Tensor x, y, b = nullptr, t = nullptr;
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    std::int64_t axis = -1;
  };
  void add(const Pointwise& pointwise);

  // c = a b. m, n, k: [rows, 1, 1, 1] int32, the extents that each row has of those planned; or null.
  struct Matmul {
    Tensor a, b, c, m = nullptr, n = nullptr, k = nullptr;
  };
  void add(const Matmul& matmul);

  // y = x reduced along the axes where y has extent 1, or fewer heads.
  void reduce(cudnnReduceTensorOp_t operation, Tensor x, Tensor y);
  // y = x with other strides, or another type.
  void reshape(Tensor x, Tensor y);

  // The graph of all operations. `handle` may be null: the graph is then planned for a described device.
  Descriptor finish(cudnnHandle_t handle) const;

 private:
  Tensor tensor(std::int64_t id, const TensorSpec& spec, Tensor starts, cudnnBackendAttributeName_t kind);
  void operation(Descriptor descriptor);

  const Functions& functions_;
  std::deque<Descriptor> descriptors_;
  std::vector<const Descriptor*> operations_;
  std::int64_t next_id_ = 1000;
};

}  // namespace mulligan::cuda::cudnn
