// Kernels that work on single elements of tensors of one shape: a thread takes N elements that lie side by
// side. Tensors of different dtypes go together: each is accessed at most 16 bytes at a time. The host
// side is element_plan.hpp.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {

// The first of the running thread's elements.
template <int N>
__device__ inline long long first_element() {
  return (blockIdx.x * (long long)(blockDim.x) + threadIdx.x) * N;
}

}  // namespace
