// Householder's reflections of a panel of rows; formulas in orthogonal.h.
//
// Determinism: one block; a dot product of two rows is summed by one warp, in f64, in a fixed order.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_INT(size)        // n
MLG_CONST_INT(panel_rows)  // b
MLG_CONST_INT(first)

constexpr int kMostRows = 32;

// Over columns [begin, size) of the rows at a and b, in every lane of the warp.
__device__ inline double row_dot(global<float> v, long long a, long long b, int begin) {
  double sum = 0;
  for (int i = begin + int(threadIdx.x) % 32; i < size; i += 32) sum += double(v[a + i]) * v[b + i];
  return warp_sum(sum);
}

// By one warp: the row at `at` becomes the unit vector of the reflection that leaves of it column j alone.
__device__ inline void make_reflector(global<float> v, long long at, int j) {
  const int lane = threadIdx.x % 32;
  const double norm = sqrt(row_dot(v, at, at, j)), x = v[at + j];
  const double head = x + (x < 0 ? -norm : norm);
  const double length = sqrt(norm * norm - x * x + head * head);
  const double factor = length > 0 ? 1 / length : 0.0;
  __syncwarp();  // every lane has read column j
  for (int i = lane; i < size; i += 32) {
    v[at + i] = i < j ? 0.0f : float(factor * (i == j ? head : double(v[at + i])));
  }
}

// One block, a warp per row.
MLG_KERNEL(soap_reflect, size, panel_rows, first)
__global__ void soap_reflect(global<const float> rows, global<float> v, global<float> triangle) {
  __shared__ shared_array<double, kMostRows> products;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long own = warp * (long long)(size);
  for (int i = lane; i < size; i += 32) v[own + i] = rows[own + i];
  for (int k = lane; k < panel_rows; k += 32) triangle[warp * panel_rows + k] = k == warp ? 2.0f : 0.0f;
  __syncthreads();
  for (int k = 0; k < panel_rows; ++k) {
    const int j = first + k;
    const long long reflector = k * (long long)(size);
    if (warp == k) make_reflector(v, reflector, j);
    __syncthreads();
    if (warp != k) {
      const double product = row_dot(v, own, reflector, j);
      if (lane == 0) products[warp] = product;
      const float twice = float(2 * product);
      for (int i = j + lane; warp > k && i < size; i += 32)
        v[own + i] = v[own + i] - twice * v[reflector + i];
    }
    __syncthreads();
    if (lane == 0 && warp < k) {
      double sum = 0;
      for (int m = warp; m < k; ++m) sum += double(triangle[warp * panel_rows + m]) * products[m];
      triangle[warp * panel_rows + k] = float(-2 * sum);
    }
    __syncthreads();
  }
}

MLG_KERNEL(soap_identity, size)
__global__ void soap_identity(global<float> x, long long count) {
  const long long i = first_element<1>();
  if (i < count) x[i] = i / size == i % size ? 1.0f : 0.0f;
}
