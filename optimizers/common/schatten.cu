// The Schatten-4 norm of matrices from their Gram matrices, and matrices divided by it; formulas in schatten.h.
//
// Determinism: a matrix is summed by one block, in f64, in a fixed order.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_INT(elements)  // of a matrix
MLG_CONST_FLOAT(floor_value)

// One block per matrix.
MLG_KERNEL(gram_norm, elements)
__global__ void gram_norm(global<const float> gram, global<float> norm) {
  __shared__ shared_array<double, 32> scratch;
  const global<const float> matrix = gram + blockIdx.x * (long long)(elements);
  double sum = 0;
  for (int i = threadIdx.x; i < elements; i += blockDim.x) {
    const double value = matrix[i];
    sum += value * value;
  }
  sum = block_sum(sum, scratch, int(blockDim.x) / 32);
  if (threadIdx.x == 0) norm[blockIdx.x] = float(sqrt(sqrt(sum)));
}

MLG_KERNEL(divide_by_norm, elements, floor_value)
template <typename X, typename Y>
__global__ void divide_by_norm(global<const X> x, global<const float> norm, global<Y> y, long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  float value[1];
  load<1>(x, i, value);
  value[0] /= max(float(norm[i / elements]), float(floor_value));
  store<1>(y, i, value);
}
