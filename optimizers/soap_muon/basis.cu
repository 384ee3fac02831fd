// Bases of second moments; formulas in basis.h.
//
// Determinism: a row is summed by one block or warp, in f64, in a fixed order; the pairs of a round of rotations are
// disjoint.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_INT(size)  // n of [n, n]
MLG_CONST_INT(columns)
MLG_CONST_INT(image_rows)
MLG_CONST_INT(sweeps)
MLG_CONST_FLOAT(tolerance)

constexpr int kFirst = 3;  // SoapScalar

// What a NaN is sorted as, so that an order stays a permutation.
__device__ inline double sortable(double value) {
  return value == value ? value : -1.7976931348623157e308;
}

// How many of the values come before value i when they are sorted from the largest.
__device__ inline int rank_of(global<double> values, int i) {
  const double own = values[i];
  int rank = 0;
  for (int j = 0; j < size; ++j) {
    const double other = values[j];
    rank += other > own || (other == own && j < i) ? 1 : 0;
  }
  return rank;
}

// One block per row.
MLG_KERNEL(soap_sort_values, size)
__global__ void soap_sort_values(global<const float> basis, global<const float> projected,
                                 global<double> values) {
  __shared__ shared_array<double, 32> scratch;
  const long long first = blockIdx.x * (long long)(size);
  double sum = 0;
  for (int j = threadIdx.x; j < size; j += blockDim.x) sum += double(basis[first + j]) * projected[first + j];
  sum = block_sum(sum, scratch, int(blockDim.x) / 32);
  if (threadIdx.x == 0) values[blockIdx.x] = sortable(sum);
}

MLG_KERNEL(soap_sort_ranks, size)
__global__ void soap_sort_ranks(global<double> values, global<int> order) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < size) order[rank_of(values, i)] = i;
}

MLG_KERNEL(soap_sort_rows, size)
__global__ void soap_sort_rows(global<const float> projected, global<int> order, global<float> sorted,
                               long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  sorted[i] = projected[order[i / size] * (long long)(size) + i % size];
}

MLG_KERNEL(soap_permute, columns)
__global__ void soap_permute(global<const float> x, global<const int> row_order,
                             global<const int> column_order, global<float> permuted, long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  permuted[i] = x[row_order[i / columns] * (long long)(columns) + column_order[i % columns]];
}

MLG_KERNEL(soap_first_rows, size, image_rows)
__global__ void soap_first_rows(global<const float> image, global<const float> scalars, global<float> rows,
                                long long count) {
  const long long i = first_element<1>();
  if (i >= count || scalars[kFirst] == 0) return;
  rows[i] = i < image_rows * (long long)(size) ? float(image[i]) : 0.0f;
}

struct PairSums {
  double aa, bb, ab;
};

// Over the rows at `a` and `b`, in every lane of the warp.
__device__ inline PairSums pair_sums(global<double> turned, long long a, long long b) {
  PairSums sums = {0, 0, 0};
  for (int j = threadIdx.x % 32; j < size; j += 32) {
    const double x = turned[a + j], y = turned[b + j];
    sums.aa += x * x;
    sums.bb += y * y;
    sums.ab += x * y;
  }
  return {warp_sum(sums.aa), warp_sum(sums.bb), warp_sum(sums.ab)};
}

// Turns two rows until they are orthogonal, by one warp; whether they were not.
__device__ inline bool turn_rows(global<double> turned, long long a, long long b) {
  const PairSums sums = pair_sums(turned, a, b);
  if (!(fabs(sums.ab) > double(tolerance) * sqrt(sums.aa) * sqrt(sums.bb))) return false;
  const double zeta = (sums.bb - sums.aa) / (2 * sums.ab);
  const double tangent = (zeta < 0 ? -1.0 : 1.0) / (fabs(zeta) + sqrt(1 + zeta * zeta));
  const double cosine = 1 / sqrt(1 + tangent * tangent), sine = cosine * tangent;
  for (int j = threadIdx.x % 32; j < size; j += 32) {
    const double x = turned[a + j], y = turned[b + j];
    turned[a + j] = cosine * x - sine * y;
    turned[b + j] = sine * x + cosine * y;
  }
  return true;
}

// One block of whole warps. turned [n, n], values [n]: workspace.
MLG_KERNEL(soap_eigenvectors, size, sweeps, tolerance)
__global__ void soap_eigenvectors(global<const float> gram, global<const float> scalars, global<float> rows,
                                  global<double> turned, global<double> values) {
  __shared__ shared_array<float, 32> scratch;
  if (scalars[kFirst] == 0) return;
  const int warps = int(blockDim.x) / 32, warp = threadIdx.x / 32, even = size + size % 2, seats = even - 1;
  for (long long i = threadIdx.x; i < (long long)(size)*size; i += blockDim.x) turned[i] = gram[i];
  __syncthreads();
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    float any = 0;
    for (int round = 0; round < seats; ++round) {
      for (int index = warp; index < even / 2; index += warps) {
        const int a = index == 0 ? round : (round + index) % seats;
        const int b = index == 0 ? seats : (round + seats - index) % seats;
        if (max(a, b) < size && turn_rows(turned, a * (long long)(size), b * (long long)(size))) any = 1;
      }
      __syncthreads();
    }
    if (block_max(any, scratch, warps) == 0) break;
  }
  for (int row = warp; row < size; row += warps) {
    const double sum = pair_sums(turned, row * (long long)(size), row * (long long)(size)).aa;
    if (threadIdx.x % 32 == 0) values[row] = sortable(sqrt(sum));
  }
  __syncthreads();
  for (int row = warp; row < size; row += warps) {
    const long long to = rank_of(values, row) * (long long)(size), from = row * (long long)(size);
    const double factor = values[row] > 0 ? 1 / values[row] : 0.0;
    for (int j = threadIdx.x % 32; j < size; j += 32) rows[to + j] = float(factor * turned[from + j]);
  }
}
